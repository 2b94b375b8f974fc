/** Evaluates the conditions of a route (`when`) on labels, images, tools and prompt size. Pure. */
import type { ChatRequest } from '../../formats/chat/request.js'
import type { WhenConfig } from '../../config/config.js'

/** The properties of a request that conditions test. Expensive ones are functions. */
export interface RequestTraits {
  /** The labels of the API key. */
  readonly labels: Readonly<Record<string, string>>
  hasImages(): boolean
  hasTools(): boolean
  /** An estimate of the prompt tokens. */
  promptTokens(): number
  /** Whether the request meets a condition of a plugin. */
  plugin(hook: string): boolean
}

/** A request without labels, images and tools, with the shortest prompt. */
export const PLAIN_REQUEST: RequestTraits = {
  labels: {},
  hasImages: () => false,
  hasTools: () => false,
  promptTokens: () => 0,
  plugin: () => false,
}

/** The traits of a request; `promptTokens` is called once or never. */
export function traitsOf(
  request: Pick<ChatRequest, 'messages' | 'tools'>,
  labels: Readonly<Record<string, string>>,
  promptTokens: () => number,
  plugin: (hook: string) => boolean = () => false,
): RequestTraits {
  let tokens: number | null = null
  return {
    labels,
    hasImages: () => hasImages(request),
    hasTools: () => request.tools.length > 0,
    promptTokens: () => (tokens ??= promptTokens()),
    plugin,
  }
}

/** Whether the request meets all conditions. */
export function matches(when: WhenConfig, traits: RequestTraits): boolean {
  const { labels, images, tools, minPromptTokens, plugin } = when
  for (const [name, value] of Object.entries(labels)) {
    if (!Object.hasOwn(traits.labels, name) || traits.labels[name] !== value) return false
  }
  if (tools !== null && tools !== traits.hasTools()) return false
  if (images !== null && images !== traits.hasImages()) return false
  if (minPromptTokens !== null && traits.promptTokens() < minPromptTokens) return false
  return plugin === null || traits.plugin(plugin)
}

function hasImages({ messages }: Pick<ChatRequest, 'messages'>): boolean {
  return messages.some(
    (message) =>
      (message.role === 'user' || message.role === 'tool') &&
      message.parts.some(({ type }) => type === 'image'),
  )
}

/** The conditions in words, for `sluice explain`: `labels team=research, images, no tools`. */
export function whenText({ labels, images, tools, minPromptTokens, plugin }: WhenConfig): string {
  const texts = Object.entries(labels).map(([name, value]) => `label ${name}=${value}`)
  if (images !== null) texts.push(images ? 'with images' : 'without images')
  if (tools !== null) texts.push(tools ? 'with tools' : 'without tools')
  if (minPromptTokens !== null) texts.push(`prompt of at least ${minPromptTokens} tokens`)
  if (plugin !== null) texts.push(`plugin ${plugin}`)
  return texts.join(', ')
}
