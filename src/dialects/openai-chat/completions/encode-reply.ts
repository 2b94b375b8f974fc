/**
 * Encodes replies as OpenAI's legacy completions, whole and streamed.
 *
 * Source: OpenAI API reference, "The completion object", read 2026-11-20.
 */
import type { ChatEvent } from '../../../chat/event.js'
import type { Reply } from '../../../chat/reply/fold.js'
import type { ChatRequest } from '../../../chat/request.js'
import { mergeUsage, type Usage } from '../../../chat/usage.js'
import { sizedText, type SizedText } from '../../../wire/frames/sized-text.js'
import type { Choice, ChoicePosition, Seed, StreamEncoder } from '../../dialect.js'
import { encodeStreamError } from '../client/encode-error.js'
import { encodeUsage } from '../client/reply/encode-usage.js'
import { encodeFinishReason } from '../client/reply/map-stop-reason.js'

/** The body of a finished reply. */
export function encodeReply(reply: Reply, request: ChatRequest, seed: Seed): SizedText {
  return encodeChoices([{ index: 0, reply }], request, seed)
}

/** The body of a reply with several choices. */
export function encodeChoices(
  choices: readonly Choice[],
  _request: ChatRequest,
  seed: Seed,
): SizedText {
  const written = choices.map(({ index, reply }) => {
    const texts = reply.blocks.map((block) =>
      block.type === 'text' || block.type === 'refusal' ? block.text : '',
    )
    return choiceOut(index, texts.join(''), encodeFinishReason(reply.reason, false, false))
  })
  const usage = encodeUsage(choices[0]?.reply.usage ?? {})
  return sizedText(`${headOf(seed)}"choices":[${written.join(',')}],"usage":${usage}}`)
}

/** Encodes one stream. */
export class CompletionEncoder implements StreamEncoder {
  private out = ''
  private usage: Usage = {}
  private readonly head: string
  private readonly includeUsage: boolean
  private readonly position: ChoicePosition

  /** `position`: the position among several choices; the end of the stream follows the last one. */
  constructor(
    request: ChatRequest,
    seed: Seed,
    position: ChoicePosition = { index: 0, isLast: true },
  ) {
    this.head = `data: ${headOf(seed)}`
    this.includeUsage = request.includeUsage
    this.position = position
  }

  take(): string {
    const { out } = this
    this.out = ''
    return out
  }

  event(event: ChatEvent): void {
    switch (event.type) {
      case 'text-delta':
      case 'refusal-delta':
        if (event.text !== '') this.choice(event.text, null)
        return
      case 'usage':
        this.usage = mergeUsage(this.usage, event.usage)
        return
      case 'finish':
        this.choice('', encodeFinishReason(event.reason, false, false))
        if (!this.position.isLast) return
        if (this.includeUsage) {
          this.out += `${this.head}"choices":[],"usage":${encodeUsage(this.usage)}}\n\n`
        }
        this.out += 'data: [DONE]\n\n'
        return
      case 'error':
        this.out += encodeStreamError(event.error)
        return
      default:
    }
  }

  private choice(text: string, reason: string | null): void {
    const usage = this.includeUsage ? ',"usage":null' : ''
    this.out += `${this.head}"choices":[${choiceOut(this.position.index, text, reason)}]${usage}}\n\n`
  }
}

/**
 * The path of the part of an event that is lost; null if nothing is lost. Requests of this format have no
 * tools.
 */
export function lossOf(event: ChatEvent): string | null {
  switch (event.type) {
    case 'thinking-start':
      return 'reply.reasoning'
    case 'image':
      return 'reply.images'
    case 'citation':
      return 'reply.citations'
    case 'opaque':
      return 'reply.opaque'
    default:
      return null
  }
}

function headOf({ id, createdAtSeconds, model }: Seed): string {
  return `{"id":"${id}","object":"text_completion","created":${createdAtSeconds},"model":${JSON.stringify(model)},`
}

function choiceOut(index: number, text: string, reason: string | null): string {
  const finish = reason === null ? 'null' : `"${reason}"`
  return `{"text":${JSON.stringify(text)},"index":${index},"logprobs":null,"finish_reason":${finish}}`
}
