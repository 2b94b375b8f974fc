/**
 * `sluice serve`: the gateway, until a signal ends it.
 */
import cluster from 'node:cluster'
import { parseArgs } from 'node:util'
import type { Command } from './command.js'
import { configPath } from './config-option.js'

/** `sluice serve`. */
export const command: Command = {
  name: 'serve',
  summary: 'run the gateway',
  help: `
Usage: sluice serve [--config FILE]

Serves the data plane on server.port and metrics, health, readiness and the configuration in force on
server.ops_port. A changed file takes effect while it runs (SIGHUP looks at once); a bad one is refused
and the old one stays in force. SIGTERM and SIGINT drain; a second one ends at once.

Options:
  --config FILE   the configuration file; without it, the one that SLUICE_CONFIG names

Example:
  sluice serve --config config/gateway.yaml
`,
  async run(argv) {
    const { values } = parseArgs({ args: [...argv], options: { config: { type: 'string' } } })
    const config = configPath(values.config, 'sluice serve')
    // Each kind of process loads only what it needs: that is most of the time to ready.
    if (cluster.isWorker) await (await import('../process/serve-worker.js')).serveAsWorker()
    else await (await import('../process/serve.js')).serve(config, process.env)
    return 0
  },
}
