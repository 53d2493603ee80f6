// From the API description: clients/generate writes this file.

export const VERSION = "0.2.0";
