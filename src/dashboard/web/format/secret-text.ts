/**
 * Credentials in a text that a user types or pastes: keys and tokens of this gateway, keys of providers, and
 * tokens of identity providers. They never become part of an address. Pure; a test compares the forms with
 * those of `control/dashboard/secret-text.ts`.
 */

/** A whole key of this gateway, which the server can look up by its digest. */
const OWN_KEY = /\bsk_[0-9A-Za-z]{44}(?![0-9A-Za-z])/
/**
 * Others: a known prefix and many characters that are no words, a JSON Web Token, keys of AWS, Google,
 * GitHub, Slack and Databricks. Keys in base64 for addresses have dashes anywhere, and some have letters
 * alone.
 */
const CREDENTIALS =
  /\b(?:(?:sk|sat|slt|slr|gsk|xai|hf|r8|fw|csk|pplx|nvapi|tgp|sess|gh[oprsu]|rpa|vc[aikpr]|cpk|psk|jina)[-_](?:[\w-]{0,24}?(?=[A-Za-z]{0,40}\d)[0-9A-Za-z]{16,}|(?:[a-z]{2,8}[-_])?[0-9A-Za-z]{22,}|(?=[\w-]{0,99}[a-z])(?=[\w-]{0,99}[A-Z])(?=[\w-]{0,99}\d)[\w-]{24,})|sk-(?:admin|ant|proj|svcacct)-[\w-]{40,}|pa-[\w-]{40,}|rc_[0-9a-f]{40,}|[0-9a-f]{32}\.[0-9A-Za-z]{16}\b|(?:glpat|xox[a-z])-[\w-]{20,}|github_pat_\w{30,}|AIza[\w-]{30,}|eyJ[\w-]{8,}\.[\w-]{8,}|A[KS]IA[0-9A-Z]{16}|(?:ABSK|bedrock-api-key-)[0-9A-Za-z+/]{32,}|(?:AQ|ya29)\.[\w-]{20,}|dapi[0-9a-f]{32})/

/** The key of this gateway in the text; null for none. */
export function ownKeyIn(text: string): string | null {
  return OWN_KEY.exec(text)?.[0] ?? null
}

/** Whether the text has a credential. */
export function hasCredential(text: string): boolean {
  return CREDENTIALS.test(text)
}
