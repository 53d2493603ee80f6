// Starts the reference. Nothing leaves this host: no validator, no fonts, no remote description.
window.addEventListener("DOMContentLoaded", () => {
  SwaggerUIBundle({
    url: "/openapi.json",
    dom_id: "#reference",
    deepLinking: true,
    docExpansion: "list",
    validatorUrl: null,
    persistAuthorization: false,
    tryItOutEnabled: true,
  });
});
