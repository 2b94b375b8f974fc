/**
 * Encodes token counts as `usageMetadata` of the Gemini format.
 *
 * Source: ai.google.dev/api/generate-content, "UsageMetadata", read 2026-11-20.
 */
import { totalTokens, type Usage } from '../../../../chat/usage.js'

const TIERS: Readonly<Record<string, string>> = {
  default: 'standard',
  flex: 'flex',
  priority: 'priority',
}

/**
 * The JSON of `usageMetadata`. Thinking tokens are not part of `candidatesTokenCount`; cached tokens are part
 * of the prompt.
 */
export function encodeUsage(usage: Usage, serviceTier: string | undefined): string {
  const { input, output, reasoning } = usage
  const visible = output === undefined ? undefined : Math.max(0, output - (reasoning ?? 0))
  let members = `"promptTokenCount":${input ?? 0}`
  members += count('candidatesTokenCount', visible)
  members += `,"totalTokenCount":${totalTokens(usage) ?? 0}`
  members += count('cachedContentTokenCount', usage.cacheRead)
  members += count('thoughtsTokenCount', reasoning)
  const prompt = kinds(usage.inputText, usage.inputImage, usage.inputAudio)
  if (prompt !== '') members += `,"promptTokensDetails":[${prompt}]`
  const candidates = kinds(usage.outputText, usage.outputImage, usage.outputAudio)
  if (candidates !== '') members += `,"candidatesTokensDetails":[${candidates}]`
  const tier = serviceTier === undefined ? undefined : TIERS[serviceTier]
  if (tier !== undefined) members += `,"serviceTier":"${tier}"`
  return `{${members}}`
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
