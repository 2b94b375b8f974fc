/** crabllm (Rust, crates.io): one provider, one virtual key; its defaults otherwise. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MODELS, PATHS } from '../load/sample-traffic.js'
import { listening } from '../processes/children.js'
import { CLIENT_KEY, crate, START_MS, type PeerKind } from './peer.js'

const VERSION = '0.0.25'
const installed = crate('crabllm', VERSION)

export const CRABLLM: PeerKind = {
  name: 'crabllm',
  version: VERSION,
  ...installed,
  async start({ children, core, port, upstreamPort }) {
    const file = join(children.folder, `crabllm-${port}.toml`)
    writeFileSync(
      file,
      `listen = "127.0.0.1:${port}"
[providers.openai]
kind = "openai"
api_key = "measured"
base_url = "http://127.0.0.1:${upstreamPort}/v1"
models = ["${MODELS.openai}"]
[[keys]]
name = "bench"
key = "${CLIENT_KEY}"
models = ["*"]
`,
      { mode: 0o600 },
    )
    const command = [installed.installedFile, 'serve', '--config', file]
    const started = children.start(core, command, { stdio: 'ignore' })
    await listening(port, started, START_MS)
    const headers = { authorization: `Bearer ${CLIENT_KEY}` }
    return { started, path: PATHS.openai, model: MODELS.openai, headers }
  },
}
