/**
 * Goal: an error of any server inside a stream ends it with an error, in each format.
 * Method: a stream of each format is broken by an error in each form and then terminated as if it were
 * complete, for the decoder and for the watcher of streams that pass through.
 */
import t from 'tap'
import type { ChatEvent } from '../../src/formats/chat/event.js'
import { Grammar } from '../../src/formats/chat/grammar.js'
import { upstreamCodecOf } from '../../src/formats/index.js'
import { request } from './openai-chat/driver.js'

type Frame = readonly [name: string, data: object | string]

/** Errors of many servers; each has the words "Out of memory". */
const ERRORS: readonly Frame[] = [
  ['', { object: 'error', message: 'Out of memory', type: 'InternalServerError', code: 500 }],
  ['', { error: { message: 'Out of memory', code: 500 } }],
  ['', { error: 'Out of memory' }],
  ['', { detail: 'Out of memory' }],
  ['', { detail: [{ loc: ['body'], msg: 'Out of memory' }] }],
  ['', { code: 50507, msg: 'Out of memory' }],
  ['', { code: 50507, message: 'Out of memory', data: null }],
  ['', { errors: [{ code: 3040, message: 'Out of memory' }] }],
  ['', { type: 'error', message: 'Out of memory' }],
  ['', { type: 'error', error: { type: 'api_error', message: 'Out of memory' } }],
  ['', { base_resp: { status_code: 1000, status_msg: 'Out of memory' } }],
  ['', { choices: null, base_resp: { status_code: 1000, status_msg: 'Out of memory' } }],
  ['', { success: false, message: 'Out of memory' }],
  ['', { error: true, message: 'Out of memory' }],
  ['', { statusCode: 500, error: 'Internal', message: 'Out of memory' }],
  ['', { status: 500, title: 'Out of memory' }],
  ['', { status: 'error', reason: 'Out of memory' }],
  ['', { event: 'error', data: { message: 'Out of memory' } }],
  ['', { data: { error: { message: 'Out of memory' } } }],
  ['', { header: { code: 10013, message: 'Out of memory', sid: 'a' } }],
  ['', { type: 'about:blank', title: 'Out of memory', status: 500 }],
  ['', { status: { code: 13, message: 'Out of memory' } }],
  ['', { object: 'error', message: 'Out of memory', choices: [] }],
  ['', { errno: 17, errmsg: 'Out of memory' }],
  ['', { error_code: 336, error_msg: 'Out of memory' }],
  ['', { err: 'Out of memory' }],
  ['', { exception: 'Out of memory' }],
  ['error', { message: 'Out of memory' }],
  ['error', { type: 'InternalServerError', message: 'Out of memory' }],
  ['error', 'Out of memory'],
]

/** Google's servers wrap errors in an array, also behind its endpoint with the format of OpenAI. */
const IN_ARRAY: Frame = ['', [{ error: { code: 503, message: 'Out of memory', status: 'UNAVAILABLE' } }]]

interface Format {
  readonly dialect: 'openai-chat' | 'openai-responses' | 'anthropic' | 'gemini'
  readonly begin: readonly Frame[]
  /** What would complete the stream. */
  readonly finish: readonly Frame[]
}

const FORMATS: readonly Format[] = [
  {
    dialect: 'openai-chat',
    begin: [
      [
        '',
        {
          id: 'c',
          object: 'chat.completion.chunk',
          model: 'm',
          choices: [{ index: 0, delta: { content: 'The' } }],
        },
      ],
    ],
    finish: [['', '[DONE]']],
  },
  {
    dialect: 'openai-responses',
    begin: [
      ['response.created', { type: 'response.created', response: { id: 'r', model: 'm', output: [] } }],
      ['response.output_text.delta', { type: 'response.output_text.delta', output_index: 0, delta: 'The' }],
    ],
    finish: [
      [
        'response.completed',
        { type: 'response.completed', response: { id: 'r', status: 'completed', output: [] } },
      ],
    ],
  },
  {
    dialect: 'anthropic',
    begin: [
      ['message_start', { type: 'message_start', message: { id: 'a', model: 'm', content: [] } }],
      [
        'content_block_start',
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      ],
      [
        'content_block_delta',
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'The' } },
      ],
    ],
    finish: [['message_stop', { type: 'message_stop' }]],
  },
  {
    dialect: 'gemini',
    begin: [
      [
        '',
        { candidates: [{ content: { parts: [{ text: 'The' }] }, finishReason: 'STOP' }], responseId: 'g' },
      ],
    ],
    finish: [],
  },
]

for (const { dialect, begin, finish } of FORMATS) {
  const codec = upstreamCodecOf(dialect)
  if (codec === null) throw new Error(dialect)
  const isGoogles = dialect === 'openai-chat' || dialect === 'gemini'
  for (const error of isGoogles ? [...ERRORS, IN_ARRAY] : ERRORS) {
    const frames = [...begin, error, ...finish].map(([name, data]): [string, string] => [
      name,
      typeof data === 'string' ? data : JSON.stringify(data),
    ])
    void t.test(`${dialect}: ${error[0]} ${JSON.stringify(error[1])}`, (t) => {
      const events: ChatEvent[] = []
      const grammar = new Grammar({ event: (event) => void events.push(event) })
      const decoder = codec.newDecoder(request(), grammar, false)
      for (const [name, data] of frames) decoder.frame(name, data)
      decoder.end()
      const last = events.at(-1)
      t.match(last, { type: 'error', error: { message: /Out of memory/ } })
      const watcher = codec.newWatcher?.({ includeUsage: true })
      const passed = frames.map(([name, data]) => watcher?.frame(name, data))
      t.equal(passed[begin.length], false)
      t.match(watcher?.error, { message: /Out of memory/ })
      t.equal(watcher?.isComplete, false)
      t.end()
    })
  }
}
