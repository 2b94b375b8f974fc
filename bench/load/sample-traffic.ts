/**
 * The request and reply of every benchmark, in each provider's format. Invented; the sizes are those of the
 * design's measurements.
 */

/** 600 bytes of ASCII, the text of every whole reply. */
export const ANSWER =
  'The harbour wakes before the town does. A bell rings twice, the fog lifts from the outer ' +
  'wall, and the boats pass the lantern on their way to the open water. By noon the ' +
  'quay is full of crates, ropes and gulls, and a sailor is always looking for a knot that ' +
  'holds. In the evening the tide returns, slowly at first, then all at once, and it carries ' +
  'the last of them home under a pale sky. The keeper writes down the hour, the wind and the ' +
  'number of masts, closes the page, and turns the lamp so that it looks out over the bay. ' +
  'He can rest beside the stove until the bell rings again, and that is well.'

/** Occurs once in the text of each fragment of a stream. */
export const MARKER = 'harbour'

/** The text of one fragment: about three tokens. */
export function fragmentText(index: number): string {
  return ` ${MARKER} ${index % 10}`
}

export type Shape = 'anthropic' | 'openai'

/** The path of an upstream of that shape. */
export const PATHS: Readonly<Record<Shape, string>> = {
  anthropic: '/v1/messages',
  openai: '/v1/chat/completions',
}

/** The model that selects an upstream of that shape. */
export const MODELS: Readonly<Record<Shape, string>> = {
  anthropic: 'claude-sonnet-4-5',
  openai: 'gpt-4o-mini',
}

/** A question of about 300 bytes, as a client of chat completions sends it. */
export function question(shape: Shape, stream: boolean): string {
  return JSON.stringify({
    model: MODELS[shape],
    messages: [
      {
        role: 'system',
        content: 'You answer briefly and in plain English, as a lighthouse would.',
      },
      {
        role: 'user',
        content:
          'Which river flows through Paris, and into which sea? One sentence is enough, and the name of the river comes first.',
      },
    ],
    max_tokens: 256,
    ...(stream ? { stream: true } : {}),
  })
}

/** The text of a long prompt: ASCII, or with several bytes in every second character. */
export type Script = 'ascii' | 'unicode'

const PARAGRAPHS: Readonly<Record<Script, string>> = {
  ascii:
    'He wrote: "The tide is late again." The boats waited outside the wall until the bell rang.\n' +
    '\tconst depth = soundings.map((each) => each.metres) // as measured at noon\n',
  unicode:
    'Он написал: «Прилив снова опоздал». 船在墙外等到钟声响起，守夜人记下了风向。\n' +
    'Die Fähre fährt um fünf Uhr – „pünktlich“, heißt es. 🚢\n',
}

/** A request whose prompt is one document of about that many bytes, with quotes, tabs and line ends. */
export function longQuestion(script: Script, bytes: number): string {
  const paragraph = PARAGRAPHS[script]
  const size = Buffer.byteLength(JSON.stringify(paragraph)) - 2
  return JSON.stringify({
    model: MODELS.openai,
    messages: [
      { role: 'system', content: 'Summarise the document in one sentence.' },
      { role: 'user', content: paragraph.repeat(Math.ceil(bytes / size)) },
    ],
    max_tokens: 256,
  })
}

/** The whole reply of an upstream. */
export function wholeReply(shape: Shape): string {
  return JSON.stringify(shape === 'anthropic' ? anthropicReply() : openaiReply())
}

function anthropicReply(): object {
  return {
    id: 'msg_bench',
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-4-5-20250929',
    content: [{ type: 'text', text: ANSWER }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: {
      input_tokens: 80,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      output_tokens: 120,
    },
  }
}

function openaiReply(): object {
  return {
    id: 'chatcmpl-bench',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: 'gpt-4o-mini-2024-07-18',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: ANSWER, refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: { prompt_tokens: 80, completion_tokens: 120, total_tokens: 200 },
  }
}

/** The frames of a stream, as server-sent events: before, between and after the fragments. */
export interface Frames {
  readonly before: readonly string[]
  readonly fragments: readonly string[]
  readonly after: readonly string[]
}

/** A stream of that many fragments. */
export function streamFrames(shape: Shape, fragments: number): Frames {
  const texts = Array.from({ length: fragments }, (_, index) => fragmentText(index))
  return shape === 'anthropic' ? anthropicFrames(texts) : openaiFrames(texts)
}

function anthropicFrames(texts: readonly string[]): Frames {
  const frame = (type: string, rest: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`
  const usage = { input_tokens: 80, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }
  const message = {
    id: 'msg_bench',
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-4-5-20250929',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { ...usage, output_tokens: 1 },
  }
  return {
    before: [
      frame('message_start', { message }),
      frame('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    ],
    fragments: texts.map((text) =>
      frame('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
    ),
    after: [
      frame('content_block_stop', { index: 0 }),
      frame('message_delta', {
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { ...usage, output_tokens: 120 },
      }),
      frame('message_stop', {}),
    ],
  }
}

function openaiFrames(texts: readonly string[]): Frames {
  const frame = (choices: readonly object[], usage: object | null): string => {
    const chunk = {
      id: 'chatcmpl-bench',
      object: 'chat.completion.chunk',
      created: 1_700_000_000,
      model: 'gpt-4o-mini-2024-07-18',
      service_tier: 'default',
      system_fingerprint: 'fp_bench',
      choices,
      usage,
    }
    return `data: ${JSON.stringify(chunk)}\n\n`
  }
  const choice = (delta: object, reason: string | null): object[] => [
    { index: 0, delta, logprobs: null, finish_reason: reason },
  ]
  return {
    before: [frame(choice({ role: 'assistant', content: '', refusal: null }, null), null)],
    fragments: texts.map((content) => frame(choice({ content }, null), null)),
    after: [
      frame(choice({}, 'stop'), null),
      frame([], { prompt_tokens: 80, completion_tokens: 120, total_tokens: 200 }),
      'data: [DONE]\n\n',
    ],
  }
}
