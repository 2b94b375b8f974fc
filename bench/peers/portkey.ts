/** Portkey's open-source gateway (Node, npm): no key of its own, the upstream named in headers. */
import { MODELS, PATHS } from '../load/sample-traffic.js'
import { listening } from '../processes/children.js'
import { peerFile, START_MS, type PeerKind } from './peer.js'

const VERSION = '1.15.2'
const FOLDER = peerFile(`portkey-${VERSION}`)
const PACKAGE = '@portkey-ai/gateway'
const MAIN = peerFile(`portkey-${VERSION}`, 'node_modules', PACKAGE, 'build', 'start-server.js')

export const PORTKEY: PeerKind = {
  name: 'portkey',
  version: VERSION,
  installedFile: MAIN,
  install: [['npm', 'install', '--no-audit', '--no-fund', '--prefix', FOLDER, `${PACKAGE}@${VERSION}`]],
  async start({ children, core, port, upstreamPort }) {
    const command = [process.execPath, MAIN, `--port=${port}`, '--headless']
    const started = children.start(core, command, {
      stdio: 'ignore',
      env: { NODE_ENV: 'production' },
    })
    await listening(port, started, START_MS)
    const headers = {
      authorization: 'Bearer measured',
      'x-portkey-provider': 'openai',
      'x-portkey-custom-host': `http://127.0.0.1:${upstreamPort}/v1`,
    }
    return { started, path: PATHS.openai, model: MODELS.openai, headers }
  },
}
