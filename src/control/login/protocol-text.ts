/** The reply of `GET /protocol`: the parts of Claude Code's gateway protocol that this version serves. */
export const PROTOCOL_TEXT = `# Gateway protocol

Sluice serves these parts of the protocol that Claude Code uses with a gateway. The base address is that of the gateway.

| request | served |
| --- | --- |
| \`GET /.well-known/oauth-authorization-server\` | yes (RFC 8414) |
| \`POST /auth/device/code\`, \`POST /oauth/device_authorization\` | yes (RFC 8628); \`surface\` is kept, \`client_id\` and \`scope\` are ignored |
| \`POST /auth/device/token\`, \`POST /oauth/token\` | yes: device code and refresh token; the reply has \`email\`. A refresh token works once; a used one, or one of a person who may not sign in any more, is 401 \`invalid_grant\` |
| \`POST /auth/device/revoke\` | yes (RFC 7009) |
| \`POST /v1/messages\`, \`POST /v1/messages/count_tokens\` | yes, with \`Authorization: Bearer\` |
| \`GET /v1/models\` | yes |
| \`GET /managed/settings\` | yes, if the configuration has \`login.claude_code_settings\`; else 404 |
| \`POST /v1/metrics\`, \`/v1/logs\`, \`/v1/traces\` | accepted from people who signed in, counted, and dropped |
| budgets | \`anthropic-ratelimit-unified-*\` headers of replies; a spent budget is 429 \`billing_error\` |
| \`GET /api/oauth/usage\` | yes: \`extra_usage\` in cents, of the budget that is used most |
| errors of requests with a token | \`{"type":"error","error":{"type","message"}}\`; a denied model is 400 \`invalid_request_error\` |
`
