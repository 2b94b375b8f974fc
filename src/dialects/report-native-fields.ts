/** Rules for all requests that are translated to another format than the client's. */
import type { ModelFacts, ModelFamily } from '../chat/model.js'
import type { ChatRequest } from '../chat/request.js'
import { GatewayError } from '../errors.js'
import type { DialectName, Losses } from './dialect.js'

/**
 * Reports the fields that only upstreams of the client's own format accept. Throws
 * `GatewayError(untranslatable)` if the reply would be wrong without one of them.
 */
export function reportNative({ native = [] }: ChatRequest, losses: Losses): void {
  for (const { path, refusal } of native) {
    if (refusal !== undefined) throw new GatewayError('untranslatable', refusal, { param: path })
    losses.drop(path, 'no-equivalent')
  }
}

const FAMILIES: Readonly<Record<DialectName, ModelFamily>> = {
  'openai-chat': 'openai',
  'openai-responses': 'openai',
  anthropic: 'anthropic',
  gemini: 'google',
}

/** Facts of an ordinary model of the dialect's own vendor. */
export function ordinaryModel(id: string, dialect: DialectName): ModelFacts {
  return { id, family: FAMILIES[dialect], createdAtSeconds: 0 }
}
