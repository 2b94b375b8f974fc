/**
 * What stands around the parts of an answer: why it ended, counts, how likely its words were.
 *
 * Source: ai.google.dev/api/generate-content, "GenerateContentResponse", read 2026-11-20.
 */
import type { FinishReason } from '../../../../chat/event.js'
import type { JsonObject } from '../../../../chat/json.js'
import type { Likely, TokenLogprob } from '../../../../chat/reply/logprobs.js'
import { totalTokens, type Usage } from '../../../../chat/usage.js'
import { PROVIDER } from '../../shared/names.js'

/** Google's own reasons, which a client of Google's knows. */
const REASONS: ReadonlySet<string> = new Set([
  'STOP',
  'MAX_TOKENS',
  'SAFETY',
  'RECITATION',
  'LANGUAGE',
  'OTHER',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'IMAGE_SAFETY',
  'IMAGE_PROHIBITED_CONTENT',
  'IMAGE_RECITATION',
  'IMAGE_OTHER',
  'NO_IMAGE',
  'MODEL_ARMOR',
])

/** Why Google refuses a prompt. */
const BLOCKS: ReadonlySet<string> = new Set([
  'SAFETY',
  'OTHER',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'IMAGE_SAFETY',
  'MODEL_ARMOR',
  'JAILBREAK',
])

const TIERS: Readonly<Record<string, string>> = {
  default: 'standard',
  flex: 'flex',
  priority: 'priority',
}

/** How an answer ended. */
export interface Ending {
  readonly reason: FinishReason
  readonly raw: string | null
  readonly serviceTier?: string | undefined
  /** The model refused in words of its own. */
  readonly isRefusal?: boolean
}

/** The `finishReason`. Calls end with STOP here. */
export function finishReasonOut(
  { reason, raw, isRefusal = false }: Ending,
  origin: string | undefined,
): string {
  // What OpenAI's models call an ordinary stop.
  if (isRefusal && reason === 'stop') return 'SAFETY'
  if (origin === PROVIDER && raw !== null && REASONS.has(raw)) return raw
  switch (reason) {
    case 'stop':
    case 'tool-use':
    case 'pause':
      return 'STOP'
    case 'length':
      return 'MAX_TOKENS'
    case 'filter':
      return 'SAFETY'
    case 'other':
      return 'OTHER'
    default:
      return reason satisfies never
  }
}

/** Why the prompt was refused, where a Gemini upstream refused it and nothing was answered; else null. */
export function blockReasonOut(
  { reason, raw }: Ending,
  origin: string | undefined,
  isEmpty: boolean,
): string | null {
  if (!isEmpty || reason !== 'filter' || origin !== PROVIDER || raw === null) return null
  return BLOCKS.has(raw) ? raw : null
}

/** The counts. Thoughts are beside the answer's tokens here, and cache reads are part of the prompt's. */
export function usageText(usage: Usage, serviceTier: string | undefined): string {
  const { input, output, reasoning } = usage
  const said = output === undefined ? undefined : Math.max(0, output - (reasoning ?? 0))
  let members = `"promptTokenCount":${input ?? 0}`
  members += count('candidatesTokenCount', said)
  members += `,"totalTokenCount":${totalTokens(usage) ?? 0}`
  members += count('cachedContentTokenCount', usage.cacheRead)
  members += count('thoughtsTokenCount', reasoning)
  const prompt = kinds(usage.inputText, usage.inputImage, usage.inputAudio)
  if (prompt !== '') members += `,"promptTokensDetails":[${prompt}]`
  const answer = kinds(usage.outputText, usage.outputImage, usage.outputAudio)
  if (answer !== '') members += `,"candidatesTokensDetails":[${answer}]`
  const tier = serviceTier === undefined ? undefined : TIERS[serviceTier]
  if (tier !== undefined) members += `,"serviceTier":"${tier}"`
  return `{${members}}`
}

/** `logprobsResult` of a candidate. */
export function logprobsOut(tokens: readonly TokenLogprob[]): JsonObject {
  return {
    topCandidates: tokens.map(({ top }) => ({ candidates: top.map(likelyOut) })),
    chosenCandidates: tokens.map(likelyOut),
  }
}

function likelyOut({ token, logprob }: Likely): JsonObject {
  return { token, logProbability: logprob }
}

function count(name: string, tokens: number | undefined): string {
  return tokens === undefined ? '' : `,"${name}":${tokens}`
}

function kinds(text?: number, image?: number, audio?: number): string {
  const counted: [string, number | undefined][] = [
    ['TEXT', text],
    ['IMAGE', image],
    ['AUDIO', audio],
  ]
  return counted
    .filter(([, tokens]) => tokens !== undefined)
    .map(([modality, tokens]) => `{"modality":"${modality}","tokenCount":${tokens ?? 0}}`)
    .join(',')
}
