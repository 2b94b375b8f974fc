/**
 * TensorZero (Rust, PyPI) without ClickHouse. Its standalone gateway is published as a container only; the
 * Python package has the same HTTP gateway as a library, which `tensorzero.py` starts on a port that the
 * library chooses.
 */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MODELS } from '../load/sample-traffic.js'
import { peerFile, START_MS, wheel, type PeerKind } from './peer.js'

const VERSION = '2026.6.0'
const FOLDER = `tensorzero-${VERSION}`
/** Prints the gateway's base URL and serves until it is ended. */
const PROGRAM = `import asyncio, sys
from tensorzero.tensorzero import _start_http_gateway

async def main():
    gateway = await _start_http_gateway(
        config_file=sys.argv[1], clickhouse_url=None, postgres_url=None, valkey_url=None, async_setup=True)
    print(gateway.base_url, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
`

export const TENSORZERO: PeerKind = {
  name: 'tensorzero',
  version: VERSION,
  ...wheel(FOLDER, `tensorzero==${VERSION}`, 'lib/python3.11/site-packages/tensorzero/tensorzero.abi3.so'),
  async start({ children, core, port, upstreamPort }) {
    const file = join(children.folder, `tensorzero-${port}.toml`)
    writeFileSync(
      file,
      `[gateway]
observability.enabled = false
[models."${MODELS.openai}"]
routing = ["bench"]
[models."${MODELS.openai}".providers.bench]
type = "openai"
model_name = "${MODELS.openai}"
api_base = "http://127.0.0.1:${upstreamPort}/v1/"
api_key_location = "none"
`,
    )
    const python = peerFile(FOLDER, 'bin', 'python')
    const started = children.start(core, [python, '-c', PROGRAM, file], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const base = new URL(await baseUrl(started.process))
    return {
      started,
      port: Number(base.port),
      path: `${base.pathname}/chat/completions`,
      model: `tensorzero::model_name::${MODELS.openai}`,
      headers: {},
    }
  },
}

/** The first line that is a URL; log lines come before it. */
async function baseUrl(child: ChildProcess): Promise<string> {
  let text = ''
  child.stdout?.on('data', (bytes: Buffer) => (text += bytes.toString()))
  const signal = AbortSignal.timeout(START_MS)
  for (;;) {
    const found = /^(http:\/\/\S+)$/m.exec(text)?.[1]
    if (found !== undefined) return found
    if (child.exitCode !== null) throw new Error(`tensorzero ended: ${child.exitCode}`)
    if (child.stdout === null) throw new Error('tensorzero has no standard output')
    await once(child.stdout, 'data', { signal })
  }
}
