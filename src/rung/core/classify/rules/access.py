"""Classification rules for authentication, authorisation and access to models."""

from __future__ import annotations

from typing import Final

from rung.core.classify.rule_index import ClassifyRule
from rung.core.domain.failures import Evidence, Kind, Phase

# Authentication, authorisation and model access.
ACCESS: Final = (
    ClassifyRule(
        id="no-key",
        kind=Kind.MISSING_CREDENTIALS,
        why="No API key is configured; a person has to provide one.",
        example=Evidence(text="No API key provided. Set ANTHROPIC_API_KEY"),
        code=("missing_api_key", "no_api_key", "api_key_required", "missing_authentication", "missing_credentials"),
        exception=("NoCredentialsError", "DefaultCredentialsError", "MissingAPIKeyError", "LoadAPIKeyError", "CredentialsNotFound", "PartialCredentialsError"),
        message_has=(
            "no api key/keys/token", "missing api key", "missing * api key", "please enter username", "missing credentials", "could not resolve authentication", "api key must be set",
            "api key is missing/required/empty", "api key required/missing/needed", "no access key", "access key id provided", "token is required/missing", "no token provided", "token not provided", "api key not set", "api key * not set/configured/provided/found in/set",
            "credentials not found", "no credentials", "unable to locate credentials", "could not load * credentials",
            "default credentials were/was not found", "didnt/not provide an api key", "provide an api key",
            "no auth/authentication credentials", "no credential for/found/available", "missing authentication header", "missing * authentication header", "missing authorization header",
            "missing bearer", "environment variable * not set", "api key option must be set", "gcloud * was not found",
            "not logged in", "not signed in", "please log in", "please sign in", "please run login", "login required", "no authentication/authorization header",
            "requires * api key", "did not find * api key", "no * credentials found", "illegal header value bbearer", "find a secret", "must provide an api key", "could not find * credentials", "credentials could not be found", "unregistered callers",
        ),
        output_has=(
            "unable to locate credentials", "could not be found in the keychain", "missing credentials please pass",
            "could not automatically determine credentials", "no api key found", "api key environment variable * not set",
            "api key client option must be set", "gh auth login", "gcloud auth login", "active account selected", "to be logged in", "need auth", "requires auth", "interactive login", "could not read username", "no password supplied", "not logged in", "default credentials were not found",
        ),
        except_if=("log in again", "sign in again", "could not be refreshed", "problem refreshing", "api key not found please pass a valid", "expired", "invalid api key", "invalid token", "is not valid"),
    ),
    ClassifyRule(
        id="abroad",
        kind=Kind.PERMISSION_DENIED,
        why="The service is not available in this region or network; another key does not help.",
        example=Evidence(status=403, provider="openai", text="Country, region, or territory not supported"),
        code=("unsupported_country_region_territory",),
        message_has=("country region or territory not supported", "unsupported countries", "supported countries", "location is not supported", "region is not supported", "virtual network firewall rules", "ip address * not allowed/authorized"),
    ),
    ClassifyRule(
        id="bot-wall",
        kind=Kind.PERMISSION_DENIED,
        why="A proxy in front of the service wants a browser to prove that a person uses it.",
        example=Evidence(status=403, provider="openai", text="<html><head><title>Just a moment...</title></head></html>"),
        message_has=(
            "^just a moment$", "^attention required", "checking your browser", "verify you are human", "enable javascript and cookies to continue",
            "sorry you have been blocked", "used cloudflare to restrict access", "security service to protect itself", "blocked by * firewall/waf", "web application firewall",
        ),
        status=(None, 403, 429, 503),
    ),
    ClassifyRule(
        id="bad-key",
        kind=Kind.AUTH_ERROR,
        why="The service rejects this key, token or login; a retry is rejected too.",
        example=Evidence(status=400, text='{"error": {"message": "API key not valid", "reason": "API_KEY_INVALID"}}'),
        code=(
            "invalid_api_key", "api_key_invalid", "authentication_error", "unauthorized", "invalid_authentication",
            "invalidclienttokenid", "unrecognizedclientexception", "expiredtoken", "expiredtokenexception",
            "signaturedoesnotmatch", "invalidaccesskeyid", "invalidsignatureexception", "unauthenticated", "token_expired",
            "invalid_token", "expired_token", "account_deactivated", "key_disabled", "invalid_grant", "invalid_client",
            "access_token_expired", "incompletesignatureexception", "incorrect_api_key", "authentication_failed",
            "invalid_auth", "invalid_key", "expired_api_key", "authfailure", "missingauthenticationtokenexception", "api_key_service_blocked", "authenticationerror",
            "access_token_scope_insufficient",
        ),
        exception=("AuthenticationError", "InvalidAPIKeyError", "CredentialRetrievalError", "AuthenticationException", "InvalidCredentialsError", "TokenExpiredError", "UnrecognizedClientException", "RefreshError", "TokenRetrievalError", "UnauthorizedSSOTokenError", "SSOTokenLoadError", "BadCredentialsException"),
        message_has=(
            "invalid/incorrect/wrong/bad api key/keys", "invalid/incorrect/wrong/bad subscription/access key", "insufficient authentication scopes", "missing scopes", "suspicious/unusual activity", "account was flagged", "account has been flagged", "invalid x api key", "invalid * api key", "api key not valid", "api key not found",
            "api key is invalid/expired/disabled/incorrect", "api key * invalid/expired/revoked/disabled/deleted/blocked", "api key provided is",
            "api key * reported as leaked", "api key does not have", "api key doesnt have", "authentication fails/failed/failure/error", "security token * invalid/expired",
            "token expired", "token is/has expired", "expired token", "invalid token/bearer/credentials/authentication",
            "oauth * not allowed", "oauth token", "not authenticated", "bad credentials", "could not validate credentials",
            "token * revoked/invalid", "key * revoked", "signature we calculated does not match",
            "login/session expired", "session is/has/was expired/invalid", "invalid session", "please re authenticate", "please reauthenticate", "please run login again", "please log in again", "sign in again", "signing in again", "token could not be refreshed", "reauthentication failed", "access key id * does not exist", "organization has been disabled",
            "account * deactivated/suspended/disabled/banned", "request not allowed", "user not found", "密钥无效", "令牌无效", "被封禁",
            "unauthorized", "invalid authorization", "authorization header * invalid", "failed to authenticate", "proxy authentication required",
        ),
        except_if=("access to the model", "access to model"),
    ),
    ClassifyRule(
        id="bad-login",
        kind=Kind.AUTH_ERROR,
        why="The server does not accept this key or login.",
        example=Evidence(text="git@host: Permission denied (publickey).", phase=Phase.TOOL, exit_code=128),
        output_has=(
            "permission denied publickey", "signing failed for", "authentication failed for", "could not read password",
            "invalid username or password/token", "invalid credentials", "aws access key id you provided does not exist",
            "login incorrect", "to provide credentials", "password authentication failed", "access denied for user", "bad credentials", "e401",
            "401 unauthorized", "http 401", "returned 401", "host key verification failed", "invalidaccesskeyid", "expiredtoken",
            "unauthorized authentication required", "support for password authentication was removed",
        ),
    ),
    ClassifyRule(
        id="no-such-model",
        kind=Kind.MODEL_UNAVAILABLE,
        why="This model is unknown, retired or not enabled for this account; another model may be available.",
        example=Evidence(status=404, text='{"error": {"message": "The model m-9 does not exist", "code": "model_not_found"}}'),
        code=(
            "model_not_found", "deploymentnotfound", "model_not_available", "invalid_model", "model_not_supported", "unknown_model",
            "model_decommissioned", "unsupported_model", "model_not_exist", "model_deprecated", "model_access_denied",
            "modelnotfound", "model_not_open", "model.access_denied", "invalid_endpoint_or_model", "key_model_access_denied", "invalid_model_id", "model_unavailable", "operationnotsupported", "invalid_model_name",
        ),
        message_has=(
            "model * does not exist", "model * doesnt exist", "model * not found", "model not exist", "model * is/are not available",
            "model * is no longer available/supported", "invalid model", "unknown model", "unsupported model", "no such model", "has been deprecated/retired/decommissioned/discontinued", "was deprecated/retired",
            "not a valid model", "model * decommissioned/deprecated/retired/discontinued", "model * has been decommissioned/deprecated/retired",
            "access to the/this model", "access to model", "model access is denied", "model names are", "is not found for api version",
            "model * is not supported", "on demand throughput isnt supported", "on demand throughput is not supported",
            "is not a supported model", "try pulling it first", "no endpoints found", "no allowed providers", "deployment * does not exist",
            "not allowed to * model", "not have access to * model", "not allowed to access model", "model identifier is invalid",
            "does not have access to model", "no available channel for model", "reached the end of its life", "publisher model * not found",
            "model id is invalid", "is not available on your plan", "model requires * subscription",
            "requested model", "specified model", "parameter model is invalid/incorrect/illegal/wrong", "must be verified to", "unable to access * model", "models * not found", "legacy * model", "model version * not found/supported/available", "use case details have not", "无权使用模型", "无权访问模型", "无权使用该模型", "no model/models found/loaded/installed", "error 404 model", "too large to be loaded", "function * not found for account", "not found the model",
        ),
        except_if=("does not support", "doesnt support", "chat template", "model architecture", "endpoints found that support", "at capacity", "overloaded", "high demand", "is loading", "currently loading", "context length", "temporarily"),
    ),
    ClassifyRule(
        id="model-named",
        kind=Kind.MODEL_UNAVAILABLE,
        why="The resource that was not found is the requested model.",
        example=Evidence(status=404, text="model: m-9", code="not_found_error"),
        code=("not_found_error",),
        contains=("model:",),
    ),
    ClassifyRule(
        id="bedrock-not-enabled",
        kind=Kind.MODEL_UNAVAILABLE,
        why="Bedrock says so when the account has no access to the model.",
        example=Evidence(text="An error occurred (ValidationException) when calling the InvokeModel operation: Operation not allowed"),
        message_has=("operation not allowed", "support the model that you provided"),
        contains=("bedrock", "invokemodel", "converse"),
    ),
    ClassifyRule(
        id="no-role",
        kind=Kind.PERMISSION_DENIED,
        why="The key is valid, but its owner lacks the required role.",
        example=Evidence(status=403, provider="vertex", text="Permission 'x.predict' denied on resource '//x'"),
        code=("accessdeniedexception",),
        message_has=(
            "lacks the required data action",
            "denied on resource", "is not authorized to perform", "missing permissions", "lacks * permission", "insufficient permissions",
            "operation/action/method is not allowed/permitted", "operation/action not allowed/permitted", "not accessible by integration",
        ),
    ),
)  # fmt: skip
