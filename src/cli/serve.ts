/** `sluice serve`: runs the gateway until a signal ends it. */
import cluster from 'node:cluster'
import { parseArgs } from 'node:util'
import { configPath, type Command } from './command.js'

/** `sluice serve`. */
export const command: Command = {
  name: 'serve',
  summary: 'run the gateway',
  help: `
Usage: sluice serve [--config FILE]

Serves the data plane on server.port, and metrics, health, readiness and the configuration in force on
server.ops_port. A changed file is reloaded (at once with SIGHUP); an invalid one is refused and the
previous one stays in force. SIGTERM and SIGINT drain the gateway; a second signal exits at once. SIGUSR1
opens log.file again after it was renamed.

Options:
  --config FILE   the configuration file (default: the variable SLUICE_CONFIG)

Exit status: 0 success, 1 failure, 2 wrong usage.

Example:
  sluice serve --config config/gateway.yaml
`,
  async run(argv) {
    const { values } = parseArgs({ args: [...argv], options: { config: { type: 'string' } } })
    const config = configPath(values.config, 'sluice serve')
    // Each kind of process loads only its own code; loading takes most of the time until ready.
    if (cluster.isWorker) await (await import('../process/serve-worker.js')).serveAsWorker()
    else await (await import('../process/serve.js')).serve(config, process.env)
    return 0
  },
}
