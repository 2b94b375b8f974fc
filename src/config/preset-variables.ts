/**
 * The variables of a preset: `{ preset: groq }` is a whole upstream, whose key is in `GROQ_API_KEY`. Sets
 * placeholders before they are replaced, so that they are treated as those of the file.
 */
import { PRESET_NAMES, PRESETS, type Preset } from './presets.js'

/** Keys of an upstream that decide its credential. */
const OWN_CREDENTIALS = ['api_key', 'api_keys', 'auth', 'platform']
/** Headers of an upstream that carry one. */
const CREDENTIAL = /^(?:authorization|api-key|x-api-key|x-goog-api-key)$/i

/** A local server, whose key is optional. */
function isLocal({ baseUrl }: Preset): boolean {
  return baseUrl !== null && baseUrl.startsWith('http:')
}

/**
 * A parsed file in which each upstream with a preset has the `api_key` and the `base_url` of the preset as
 * placeholders, unless it has its own. The key is the first variable that is set; of a service with the
 * preset's own address, else the first one, which is then named as missing.
 */
export function withPresetVariables(
  file: unknown,
  env: Readonly<Record<string, string | undefined>>,
): unknown {
  if (!isRecord(file) || !isRecord(file['upstreams'])) return file
  const upstreams = Object.entries(file['upstreams']).map(([name, upstream]): [string, unknown] => {
    if (!isRecord(upstream)) return [name, upstream]
    const preset = presetNamed(upstream['preset'])
    return [name, preset === null ? upstream : { ...defaultsOf(preset, upstream, env), ...upstream }]
  })
  return { ...file, upstreams: Object.fromEntries(upstreams) }
}

function defaultsOf(
  preset: Preset,
  upstream: Readonly<Record<string, unknown>>,
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const hasAddress = upstream['base_url'] !== undefined
  const address = !hasAddress && preset.baseUrl?.includes('${') === true ? { base_url: preset.baseUrl } : {}
  const hasCredential =
    OWN_CREDENTIALS.some((key) => upstream[key] !== undefined) ||
    (isRecord(upstream['headers']) && Object.keys(upstream['headers']).some((name) => CREDENTIAL.test(name)))
  const isSet = preset.variables.find((variable) => (env[variable]?.trim() ?? '') !== '')
  const variable = isSet ?? (hasAddress || isLocal(preset) ? undefined : preset.variables[0])
  if (hasCredential || variable === undefined) return address
  return { ...address, api_key: `\${${variable}}` }
}

function presetNamed(name: unknown): Preset | null {
  const found = PRESET_NAMES.find((each) => each === name)
  return found === undefined ? null : PRESETS[found]
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
