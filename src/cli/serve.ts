/** `sluice serve`: runs the gateway until a signal ends it. */
import cluster from 'node:cluster'
import { configOption, declare } from './command.js'

/** `sluice serve`. */
export function command() {
  return declare({
    name: 'serve',
    summary: 'run the gateway',
    description: `
Serves the data plane on server.port, and metrics, health, readiness and the configuration in force on
server.ops_port. A changed file is reloaded (at once with SIGHUP); an invalid one is refused and the
previous one stays in force. SIGTERM and SIGINT drain the gateway; a second signal exits at once. SIGUSR1
opens log.file again after it was renamed.`,
    example: 'sluice serve --config config/gateway.yaml',
  })
    .addOption(configOption())
    .action(async ({ config }) => {
      // Each kind of process loads only its own code; loading takes most of the time until ready.
      if (cluster.isWorker) await (await import('../process/serve-worker.js')).serveAsWorker()
      else await (await import('../process/serve.js')).serve(config, process.env)
    })
}
