/** Names of client formats, by their id in ledger entries. */
export const FORMAT_NAMES: Readonly<Record<string, string>> = {
  chat: 'Chat completions',
  completions: 'Completions',
  messages: 'Messages',
  responses: 'Responses',
  gemini: 'Gemini',
  embeddings: 'Embeddings',
  native: 'Native access',
}
