/** What the configuration makes of a request for a model, as `sluice explain` prints it. */
import { LABELS } from '../../accounts/changes/fields.js'
import {
  ANY_OBJECT,
  choiceType,
  FLAG,
  numberType,
  readFields,
  textIn,
  textType,
  type Fields,
} from '../../accounts/changes/field-types.js'
import { invalid } from '../../accounts/changes/refusal.js'
import { isObject, objectOf } from '../../base/json.js'
import { OPERATION_NAMES } from '../../formats/chat/operations.js'
import { anyObject, replyForm } from './reply-forms.js'
import type { AdminRoute } from './route.js'
import type { AdminServices } from './services.js'

const FIELDS: Fields = {
  model: {
    type: textType((text) => text !== '' && text.length <= 256, { fix: 'Send the id of a model.' }),
    means: 'The model of the request.',
  },
  operation: {
    type: choiceType(OPERATION_NAMES),
    means: 'What the request is for, by its name here or in traces; absent: a chat.',
    optional: true,
  },
  labels: { type: LABELS, means: 'Labels of the API key, for the conditions of routes.', default: {} },
  images: { type: FLAG, means: 'The request has images.', default: false },
  tools: { type: FLAG, means: 'The request has tools.', default: false },
  prompt_tokens: {
    type: numberType(0, 1_000_000_000),
    means: 'The size of its prompt in tokens.',
    default: 0,
  },
  body: {
    type: ANY_OBJECT,
    means:
      'A chat-completions request; the reply has for each of its fields whether it reaches the first upstream. Not with `operation`.',
    optional: true,
  },
}

/** As `sluice explain --json` prints it. */
const EXPLANATION = replyForm('Explanation', anyObject)

export function explainRoutes({ explain }: AdminServices): AdminRoute[] {
  return [
    {
      ...{ method: 'POST', path: '/explain', scopes: ['config:read'] },
      summary: 'The route and the upstreams of a request for a model, and why; sends nothing',
      body: { name: 'Explain', fields: FIELDS },
      replies: { 200: EXPLANATION },
      handle: ({ body }) => {
        const {
          model,
          operation,
          labels,
          images,
          tools,
          prompt_tokens: tokens,
          body: request,
        } = readFields(FIELDS, body)
        if (isObject(request) && typeof operation === 'string') {
          throw invalid('operation', 'A body is that of a chat.', 'Send operation or body, not both.')
        }
        const json = explain({
          model: textIn(model),
          operation: typeof operation === 'string' ? operation : null,
          labels: Object.fromEntries(
            Object.entries(objectOf(labels)).map(([name, value]) => [name, textIn(value)]),
          ),
          hasImages: images === true,
          hasTools: tools === true,
          promptTokens: Number(tokens),
          body: isObject(request) ? Buffer.from(JSON.stringify(request)) : null,
        })
        return Promise.resolve({ status: 200, json })
      },
    },
  ]
}
