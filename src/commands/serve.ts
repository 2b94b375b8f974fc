/**
 * `sluice serve`: the gateway, until a signal ends it.
 */
import { parseArgs } from 'node:util'
import { ConfigRefused } from '../config/watch.js'
import { serve } from '../serve.js'
import { UsageError, type Command } from './command.js'

/** `sluice serve`. */
export const command: Command = {
  name: 'serve',
  summary: 'run the gateway',
  help: `
Usage: sluice serve --config FILE

Serves the data plane on server.port and metrics, health, readiness and the configuration in force on
server.ops_port. A changed file takes effect while it runs (SIGHUP looks at once); a bad one is refused
and the old one stays in force. SIGTERM and SIGINT drain; a second one ends at once.

Options:
  --config FILE   the configuration file

Example:
  sluice serve --config config/gateway.yaml
`,
  async run(argv) {
    const { values } = parseArgs({ args: [...argv], options: { config: { type: 'string' } } })
    if (values.config === undefined) throw new UsageError("'sluice serve' needs --config FILE")
    try {
      await serve(values.config, process.env)
      return 0
    } catch (error) {
      if (!(error instanceof ConfigRefused)) throw error
      console.error(`sluice: ${error.message}`)
      return 1
    }
  },
}
