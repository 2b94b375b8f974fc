/** Noveum AI Gateway (Rust, crates.io) without its platform: the client sends the provider's key. */
import { MODELS, PATHS } from '../load/sample-traffic.js'
import { listening } from '../processes/children.js'
import { crate, START_MS, type PeerKind } from './peer.js'

const VERSION = '2.0.1'
const installed = crate('noveum-ai-gateway', VERSION)

export const NOVEUM: PeerKind = {
  name: 'noveum',
  version: VERSION,
  ...installed,
  async start({ children, core, port, upstreamPort }) {
    const started = children.start(core, [installed.installedFile], {
      stdio: 'ignore',
      env: {
        HOST: '127.0.0.1',
        PORT: String(port),
        WORKER_THREADS: '1',
        OPENAI_BASE_URL: `http://127.0.0.1:${upstreamPort}`,
      },
    })
    await listening(port, started, START_MS)
    const headers = { authorization: 'Bearer measured', 'x-provider': 'openai' }
    return { started, path: PATHS.openai, model: MODELS.openai, headers }
  },
}
