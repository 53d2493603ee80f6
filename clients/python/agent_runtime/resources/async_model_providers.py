# Written by clients/generate from the API description.
"""Servers of models that agents use, with their models and prices."""

from __future__ import annotations

from collections.abc import Sequence

from .. import inputs, types
from .._options import CallOptions
from .._page import AsyncPages
from .._protocol import Null, body_of, segment
from .._resource import AsyncResource


class AsyncModelProviders(AsyncResource):
    """Servers of models that agents use, with their models and prices."""

    async def create(
        self,
        *,
        name: str,
        base_url: str,
        models: Sequence[inputs.ModelInput | types.Model],
        api_key_name: str | Null | None = None,
        api_key_secret_ref: inputs.SecretRefInput | types.SecretRef | Null | None = None,
        server_options: inputs.ModelProviderOptionsInput | types.ModelProviderOptions | None = None,
        options: CallOptions | None = None,
    ) -> types.ModelProvider:
        """Register a model provider.

        Access: admin on tenant. May also be refused with ``host-access-denied``, ``already-exists``,
        ``secrets-unavailable``.

        - ``name``: Unique in the tenant.
        - ``base_url``: Where its OpenAI-compatible API begins; usually ends in ``/v1``.
        - ``api_key_name``: The name of a key that the operator listed for the base URL's origin (``SVC_MODEL_KEYS``).
        - ``api_key_secret_ref``: The secret that is its key, read for each call; not beside ``apiKeyName``. It goes to
          the base URL.
        - ``server_options``: How it is asked.
        """
        return await self._call(
            types.ModelProvider,
            "POST",
            "/v1/model-providers",
            body=body_of({
                "name": name,
                "baseUrl": base_url,
                "apiKeyName": api_key_name,
                "apiKeySecretRef": api_key_secret_ref,
                "serverOptions": server_options,
                "models": models,
            }),
            options=options,
        )

    def list(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        order: types.Order | None = None,
        options: CallOptions | None = None,
    ) -> AsyncPages[types.ModelProvider]:
        """List the model providers that the caller may read.

        Access: readable model-providers. May also be refused with ``key-project-mismatch``.

        - ``cursor``: The ``nextCursor`` of the page before; left out for the first page.
        - ``limit``: Rows at most.
        - ``order``: The direction.
        """
        return self._list(
            types.ModelProvider,
            "/v1/model-providers",
            query={"cursor": cursor, "limit": limit, "order": order},
            options=options,
        )

    async def get(self, model_provider_id: str, *, options: CallOptions | None = None) -> types.ModelProvider:
        """Read a model provider.

        Access: read on model-provider in path. May also be refused with ``not-found``.
        """
        return await self._call(
            types.ModelProvider,
            "GET",
            f"/v1/model-providers/{segment(model_provider_id)}",
            options=options,
        )

    async def update(
        self,
        model_provider_id: str,
        *,
        name: str | Null | None = None,
        base_url: str | Null | None = None,
        api_key_name: str | Null | None = None,
        api_key_secret_ref: inputs.SecretRefInput | types.SecretRef | Null | None = None,
        server_options: inputs.ModelProviderOptionsInput | types.ModelProviderOptions | Null | None = None,
        models: Sequence[inputs.ModelInput | types.Model] | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.ModelProvider:
        """Change a model provider: what is left out stays, a list of models replaces the one that stands.

        Access: admin on model-provider in path. May also be refused with ``host-access-denied``, ``not-found``,
        ``already-exists``, ``conflict``, ``secrets-unavailable``.

        - ``api_key_name``: Null: it takes no key.
        - ``api_key_secret_ref``: Null: it takes no secret.
        - ``server_options``: They replace those that stand.
        """
        return await self._call(
            types.ModelProvider,
            "PATCH",
            f"/v1/model-providers/{segment(model_provider_id)}",
            body=body_of({
                "name": name,
                "baseUrl": base_url,
                "apiKeyName": api_key_name,
                "apiKeySecretRef": api_key_secret_ref,
                "serverOptions": server_options,
                "models": models,
            }),
            options=options,
        )

    async def delete(self, model_provider_id: str, *, options: CallOptions | None = None) -> None:
        """Delete a model provider that no version of an agent uses.

        Access: admin on model-provider in path. May also be refused with ``not-found``, ``conflict``.
        """
        await self._do("DELETE", f"/v1/model-providers/{segment(model_provider_id)}", options=options)

    async def check(
        self,
        model_provider_id: str,
        *,
        model: str | Null | None = None,
        options: CallOptions | None = None,
    ) -> types.ModelProviderCheck:
        """Ask a model provider all that an agent needs of it, and say of each step what was found.

        Access: admin on model-provider in path. May also be refused with ``not-found``, ``conflict``.

        - ``model``: One of the provider's models; the first by name if absent.
        """
        return await self._call(
            types.ModelProviderCheck,
            "POST",
            f"/v1/model-providers/{segment(model_provider_id)}/check",
            body=body_of({"model": model}),
            options=options,
        )
