/** The companies behind upstreams and models, by their names for people. */
import { factsFor } from '../config/catalogue.js'
import type { Catalogue, Config } from '../config/config.js'
import { PRESETS } from '../config/presets.js'

/** Names of companies. */
export interface Companies {
  /** The company that is paid for an upstream: the cloud, else the vendor, else the name of its host. */
  readonly providerOf: (upstream: string) => string
  /** The company that made a model; null if it is unknown. */
  readonly publisherOf: (model: string) => string | null
}

const CLOUDS = { bedrock: 'Amazon Web Services', vertex: 'Google Cloud', azure: 'Microsoft Azure' } as const
const MAKERS: Readonly<Record<string, string>> = {
  openai: 'OpenAI',
  anthropic: 'Anthropic',
  google: 'Google',
}

/** The companies of a configuration. */
export function companiesOf({ upstreams }: Config, catalogue: Catalogue): Companies {
  const providerOf = (name: string): string => {
    const upstream = upstreams[name]
    if (upstream === undefined) return name
    const { platform, preset, baseUrl } = upstream
    if (platform !== null) return CLOUDS[platform.name]
    if (preset !== null) return PRESETS[preset].title
    const { hostname } = new URL(baseUrl)
    const vendor = Object.values(PRESETS).find((each) => each.baseUrl?.includes(`//${hostname}/`) === true)
    return vendor?.title ?? hostname
  }
  const publisherOf = (model: string): string | null => {
    const found = catalogue.find(model)
    return found === null ? null : (MAKERS[factsFor(catalogue, model).family] ?? null)
  }
  return { providerOf, publisherOf }
}
