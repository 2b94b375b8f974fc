/**
 * The model that an id of a cloud names: `us.anthropic.claude-sonnet-4-5-20250929-v1:0` of Bedrock,
 * `claude-sonnet-4-5@20250929` of Vertex. Pure.
 */

/** The parts of a cloud's id. */
interface CloudModel {
  /** The vendor's own id, which a catalogue may have: `claude-sonnet-4-5-20250929`. */
  readonly id: string
  /** Bedrock's id of the foundation model, without the prefix of an inference profile. */
  readonly foundation: string
  /** Served by an inference profile of some regions; `global.` and plain ids are not. */
  readonly isGeographic: boolean
}

/** Prefixes of inference profiles (Bedrock user guide, "Supported Regions and models", read 2026-11-23). */
const PROFILE = /^(us|eu|apac|jp|au|ca|sa|us-gov|global)\.(?=[a-z0-9-]+\.)/
/** `vendor.model-v1:0`; a suffix such as `:18k` is the context window of provisioned throughput. */
const BEDROCK = /^([a-z0-9-]+)\.([a-z0-9][\w.-]*?)(?:-v\d+(?::\d+(?::\w+)?)?|-\d+:\d+|:\d+)?$/
const ARN = /^arn:[a-z-]+:bedrock:[a-z0-9-]*:\d*:(?:foundation-model|inference-profile)\/(.+)$/
const VERTEX = /^([a-z0-9][\w.-]*)@(\d{8}|default|latest)$/
/** Vendors on Bedrock: an id with another first part is a model with a dot in its name, such as gpt-5.4. */
const VENDORS: ReadonlySet<string> = new Set([
  ...['ai21', 'amazon', 'anthropic', 'cohere', 'deepseek', 'google', 'luma', 'meta', 'minimax'],
  ...['mistral', 'moonshot', 'moonshotai', 'nvidia', 'openai', 'qwen', 'stability'],
  ...['twelvelabs', 'writer', 'zai'],
])
const MAX_CHARS = 256

/** Null if the id is not one of a cloud, or an opaque one, such as an application inference profile. */
export function cloudModelOf(model: string): CloudModel | null {
  if (model.length > MAX_CHARS) return null
  const vertex = VERTEX.exec(model)
  if (vertex !== null) {
    const [, name = '', version = ''] = vertex
    const id = /^\d/.test(version) ? `${name}-${version}` : name
    return { id, foundation: model, isGeographic: false }
  }
  const named = ARN.exec(model)?.[1] ?? model
  const profile = PROFILE.exec(named)
  const foundation = profile === null ? named : named.slice(profile[0].length)
  const [, vendor = '', id = ''] = BEDROCK.exec(foundation) ?? []
  if (!VENDORS.has(vendor)) return null
  return { id, foundation, isGeographic: profile !== null && profile[1] !== 'global' }
}
