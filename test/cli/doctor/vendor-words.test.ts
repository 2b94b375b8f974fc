/**
 * Goal: for each feature that a vendor refuses, in any words and form, `sluice doctor` shows these words, and
 * the lines that it prints make what they fix pass, without taking away what works.
 * Method: one vendor on a socket for each feature and form of errors; the printed lines in a second file.
 */
import t from 'tap'
import { arrayOf, objectOf, type JsonObject } from '../../../src/base/json.js'
import { openVendor, type RefusalOf } from './strict-vendor.js'
import { ofToday } from '../../helpers/long-suite.js'

t.setTimeout(300_000)

interface Vendor {
  readonly feature: string
  /** Whether it refuses the body. */
  readonly refuses: (body: JsonObject) => boolean
  readonly status?: number
  readonly reply: object
  /** In the message of the outcome. */
  readonly words: RegExp
  /** Null: no quirk helps. */
  readonly quirks: object | null
  /** What the feature is with the quirks. */
  readonly then?: 'ok' | 'differs'
}

const has = (key: string) => (body: JsonObject) => key in body
const formatIs = (type: string) => (body: JsonObject) => objectOf(body['response_format'])['type'] === type
const hasRole = (role: string) => (body: JsonObject) =>
  arrayOf(body['messages']).some((message) => objectOf(message)['role'] === role)
const hasImage = (body: JsonObject): boolean =>
  arrayOf(body['messages']).some((message) => Array.isArray(objectOf(message)['content']))

const VENDORS: Readonly<Record<string, Vendor>> = {
  'a newer model of OpenAI': {
    feature: 'chat',
    refuses: has('max_tokens'),
    reply: {
      error: {
        message:
          "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        type: 'invalid_request_error',
        param: 'max_tokens',
        code: 'unsupported_parameter',
      },
    },
    words: /'max_tokens' is not supported with this model/,
    quirks: { rename: { max_tokens: 'max_completion_tokens' } },
  },
  Mistral: {
    feature: 'max_completion_tokens',
    refuses: has('max_completion_tokens'),
    status: 422,
    reply: {
      object: 'error',
      message: {
        detail: [
          {
            type: 'extra_forbidden',
            loc: ['body', 'max_completion_tokens'],
            msg: 'Extra inputs are not permitted',
          },
        ],
      },
      type: 'invalid_request_error',
    },
    words: /Extra inputs are not permitted/,
    quirks: { rename: { max_completion_tokens: 'max_tokens' } },
  },
  DeepSeek: {
    feature: 'developer_role',
    refuses: hasRole('developer'),
    status: 422,
    reply: {
      error: {
        message:
          'Failed to deserialize the JSON body into the target type: messages[0].role: unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool`',
        type: 'invalid_request_error',
      },
    },
    words: /unknown variant `developer`/,
    quirks: { messages: { roles: { developer: 'system' } } },
  },
  Databricks: {
    feature: 'stream',
    refuses: has('stream_options'),
    reply: { error_code: 'BAD_REQUEST', message: 'stream_options: Extra inputs are not permitted' },
    words: /stream_options: Extra inputs/,
    quirks: { drop: ['stream_options'] },
    then: 'ok',
  },
  Volcengine: {
    feature: 'parallel_tools',
    refuses: has('parallel_tool_calls'),
    reply: {
      error: {
        code: 'InvalidParameter',
        message: 'The parameter `parallel_tool_calls` specified in the request is not valid',
        param: 'parallel_tool_calls',
        type: 'BadRequest',
      },
    },
    words: /`parallel_tool_calls` specified/,
    quirks: { drop: ['parallel_tool_calls'] },
  },
  Moonshot: {
    feature: 'tool_choice_required',
    refuses: (body) => body['tool_choice'] === 'required',
    reply: { error: { message: 'tool_choice required is not supported', type: 'invalid_request_error' } },
    words: /tool_choice required is not supported/,
    quirks: { drop: ['tool_choice'] },
  },
  Ollama: {
    feature: 'tools',
    refuses: has('tools'),
    reply: {
      error: {
        message: 'registry.ollama.ai/library/gemma2:latest does not support tools',
        type: 'api_error',
        param: null,
        code: null,
      },
    },
    words: /does not support tools/,
    quirks: null,
  },
  vLLM: {
    feature: 'json_object',
    refuses: has('response_format'),
    reply: {
      object: 'error',
      message:
        "[{'type': 'extra_forbidden', 'loc': ('body', 'response_format'), 'msg': 'Extra inputs are not permitted'}]",
      type: 'BadRequestError',
      param: null,
      code: 400,
    },
    words: /'response_format'/,
    quirks: { drop: ['response_format'] },
    then: 'differs',
  },
  'DeepSeek, schemas': {
    feature: 'json_schema',
    refuses: formatIs('json_schema'),
    reply: {
      error: { message: 'This response_format type is unavailable now', type: 'invalid_request_error' },
    },
    words: /type is unavailable now.*json_object/,
    quirks: null,
  },
  Perplexity: {
    feature: 'json_object',
    refuses: formatIs('json_object'),
    reply: {
      error: {
        message: "At body -> response_format -> type: Input should be 'text', 'json_schema' or 'regex'",
        type: 'bad_request',
        code: 400,
      },
    },
    words: /Input should be 'text'.*json_schema/,
    quirks: null,
  },
  Cloudflare: {
    feature: 'image',
    refuses: hasImage,
    reply: {
      success: false,
      errors: [{ code: 5006, message: "AiError: Bad input: '/messages/0/content' must be string" }],
      result: {},
      messages: [],
    },
    words: /must be string/,
    quirks: null,
  },
  Google: {
    feature: 'reasoning',
    refuses: has('reasoning_effort'),
    reply: [
      {
        error: {
          code: 400,
          message: 'Thinking level is not supported for this model.',
          status: 'INVALID_ARGUMENT',
        },
      },
    ],
    words: /Thinking level is not supported/,
    quirks: { drop: ['reasoning_effort'] },
    then: 'differs',
  },
  watsonx: {
    feature: 'long_tool_names',
    refuses: (body) => JSON.stringify(body['tools'] ?? '').includes('of_one_city'),
    reply: {
      errors: [
        { code: 'invalid_request_entity', message: "Json document validation error: 'name' is too long" },
      ],
      trace: 'b1',
      status_code: 400,
    },
    words: /'name' is too long/,
    quirks: null,
  },
  TGI: {
    feature: 'parallel_tools',
    refuses: has('parallel_tool_calls'),
    status: 422,
    reply: { error: 'Input validation error: unknown field `parallel_tool_calls`', error_type: 'validation' },
    words: /unknown field `parallel_tool_calls`/,
    quirks: { drop: ['parallel_tool_calls'] },
  },
  Cohere: {
    feature: 'reasoning',
    refuses: has('reasoning_effort'),
    reply: { id: '1', message: 'invalid request: reasoning_effort is not supported by this model' },
    words: /reasoning_effort is not supported/,
    quirks: { drop: ['reasoning_effort'] },
    then: 'differs',
  },
}

for (const [name, vendor] of ofToday(Object.entries(VENDORS), 6)) {
  void t.test(`${name} refuses ${vendor.feature}`, async (t) => {
    const { feature, refuses, status = 400, reply, words, quirks, then } = vendor
    const refusalOf: RefusalOf = (body) => (refuses(body) ? { status, reply } : null)
    const first = await openVendor(t, refusalOf)
    const { made, outcomes } = await first.doctor('--model', 'strict-1', '--json')
    t.match(outcomes[feature], { outcome: 'refused', status, message: words, quirks })
    t.same(made['quirks'], quirks)
    if (quirks === null) return
    const printed = await first.doctor('--model', 'strict-1', '--feature', feature)
    const text = printed.out.slice(printed.out.indexOf('    quirks:'), printed.out.indexOf('\n\nCost'))
    const second = await openVendor(t, refusalOf, `${text}\n`)
    const fixed = await second.doctor('--model', 'strict-1', '--json')
    t.equal(fixed.status, 0, fixed.err)
    t.same(fixed.made['quirks'], null)
    if (then !== undefined) t.equal(fixed.outcomes[feature]?.['outcome'], then)
    for (const [other, { outcome }] of Object.entries(outcomes)) {
      if (outcome === 'ok') t.equal(fixed.outcomes[other]?.['outcome'], 'ok', `${other} still works`)
    }
  })
}
