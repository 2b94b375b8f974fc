/**
 * Credentials in the query of a request: addresses are kept in histories and logs. Pure;
 * `web/format/secret-text.ts` has the same forms for the page, and a test compares the two.
 */
const CREDENTIALS =
  /\b(?:(?:sk|sat|slt|slr|gsk|xai|hf|r8|fw|csk|pplx|nvapi|tgp|sess|gh[oprsu]|rpa|vc[aikpr]|cpk|psk|jina)[-_](?:[\w-]{0,24}?(?=[A-Za-z]{0,40}\d)[0-9A-Za-z]{16,}|(?:[a-z]{2,8}[-_])?[0-9A-Za-z]{22,}|(?=[\w-]{0,99}[a-z])(?=[\w-]{0,99}[A-Z])(?=[\w-]{0,99}\d)[\w-]{24,})|sk-(?:admin|ant|proj|svcacct)-[\w-]{40,}|pa-[\w-]{40,}|rc_[0-9a-f]{40,}|[0-9a-f]{32}\.[0-9A-Za-z]{16}\b|(?:glpat|xox[a-z])-[\w-]{20,}|github_pat_\w{30,}|AIza[\w-]{30,}|eyJ[\w-]{8,}\.[\w-]{8,}|A[KS]IA[0-9A-Z]{16}|(?:ABSK|bedrock-api-key-)[0-9A-Za-z+/]{32,}|(?:AQ|ya29)\.[\w-]{20,}|dapi[0-9a-f]{32})/

/** Whether the text has a credential: a known prefix and many characters, or a JSON Web Token. */
export function hasCredential(text: string): boolean {
  return CREDENTIALS.test(text)
}
