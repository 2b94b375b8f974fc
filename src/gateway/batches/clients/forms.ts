/** The forms of batches by the formats of clients. */
import type { DialectName } from '../../../formats/dialect.js'
import { resolveEndpoint } from '../../../formats/index.js'
import { anthropicForm } from './anthropic-form.js'
import type { ClientForm } from './client-form.js'
import { geminiForm } from './gemini-form.js'
import { openaiForm } from './openai-form.js'

/** The form of the clients of a format. */
export function formOfDialect(dialect: DialectName): ClientForm {
  if (dialect === 'anthropic') return anthropicForm
  return dialect === 'gemini' ? geminiForm : openaiForm
}

/** The form in which a batch was made, by the endpoint of its lines. */
export function formOfBatch({ endpoint }: { readonly endpoint: string }): ClientForm {
  return formOfDialect(resolveEndpoint('POST', endpoint)?.dialect ?? 'openai-chat')
}
