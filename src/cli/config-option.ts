/** The configuration file of a command: `--config FILE`, else the environment variable SLUICE_CONFIG. */
import { UsageError } from './usage-error.js'

/**
 * The path of the configuration file. `option` is the value of `--config`, which overrides SLUICE_CONFIG.
 * Throws `UsageError` that names both if neither is given.
 */
export function configPath(
  option: string | undefined,
  command: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
): string {
  const path = option ?? env['SLUICE_CONFIG'] ?? ''
  if (path !== '') return path
  throw new UsageError(
    `'${command}' needs a configuration file: pass --config FILE or set SLUICE_CONFIG`,
  )
}
