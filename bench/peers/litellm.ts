/**
 * LiteLLM's proxy (Python, PyPI) with one worker and a master key, without a database; also with `rust: true`
 * in the settings of the model, with which its library in Rust makes the call.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MODELS, PATHS } from '../load/sample-traffic.js'
import { listening } from '../processes/children.js'
import { CLIENT_KEY, peerFile, START_MS, wheel, type PeerKind, type Place, type StartedPeer } from './peer.js'

const VERSION = '1.108.0'
const FOLDER = `litellm-${VERSION}`
const installed = wheel(FOLDER, `litellm[proxy]==${VERSION}`, 'bin/litellm')

export const LITELLM = litellm('litellm', '')
export const LITELLM_RUST = litellm('litellm-rust', ', rust: true')

/** `more`: further settings of the model, as YAML flow entries. */
function litellm(name: string, more: string): PeerKind {
  return { name, version: VERSION, ...installed, start: (place) => start(place, more) }
}

async function start({ children, core, port, upstreamPort }: Place, more: string): Promise<StartedPeer> {
  const file = join(children.folder, `litellm-${port}.yaml`)
  writeFileSync(
    file,
    `model_list:
  - model_name: ${MODELS.openai}
    litellm_params: { model: 'openai/${MODELS.openai}', api_base: 'http://127.0.0.1:${upstreamPort}/v1', api_key: measured${more} }
general_settings: { master_key: ${CLIENT_KEY} }
`,
    { mode: 0o600 },
  )
  const command = [peerFile(FOLDER, 'bin', 'litellm'), '--config', file]
  const options = ['--host', '127.0.0.1', '--port', String(port), '--num_workers', '1']
  const started = children.start(core, [...command, ...options], {
    stdio: 'ignore',
    env: {
      LITELLM_LOCAL_MODEL_COST_MAP: 'True',
      LITELLM_TELEMETRY: 'False',
    },
  })
  await listening(port, started, START_MS)
  const headers = { authorization: `Bearer ${CLIENT_KEY}` }
  return { started, path: PATHS.openai, model: MODELS.openai, headers }
}
