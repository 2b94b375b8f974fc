/**
 * `sluice backup`: copies the embedded store to a file, beside a running gateway.
 */
import { counted } from '../base/counted.js'
import { existsSync, lstatSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { backupSqlite } from '../store/sqlite/background/backup.js'
import { configOption, declare } from './command.js'
import { configInForce, processTerminal, type Terminal } from './with-store.js'
import { reporting } from './exit-status.js'

/** `sluice backup`. */
export function command() {
  return declare({
    name: 'backup',
    summary: 'copy the embedded store to a file',
    description: `
Makes a consistent copy of the embedded store, also while a gateway writes to it, and verifies the copy.
A long copy reports its progress on stderr. FILE must not exist; its mode is 0600, since it contains
password hashes. To restore: stop the gateway, remove sluice.db-wal and sluice.db-shm, replace sluice.db
with the copy, and start the gateway.`,
    exitStatus: '0 the copy is verified, 1 failure, 2 wrong usage.',
    example: 'sluice backup /backup/sluice.db --config config/gateway.yaml',
  })
    .argument('<FILE>')
    .addOption(configOption('the configuration file, whose store is copied'))
    .action(async (file, { config }) => {
      process.exitCode = await runBackup(config, resolve(file), processTerminal)
    })
}

/** Copies the store of a configuration file; exit status 1 with the reason if that fails. */
async function runBackup(configPath: string, file: string, terminal: Terminal): Promise<number> {
  const inForce = await configInForce(configPath, (line) => terminal.err(line))
  if (inForce === null) return 1
  const path = /^sqlite:(.+)$/.exec(inForce.config.store)?.[1]
  if (path === undefined) {
    terminal.err('sluice: the store is not a file: back Redis up with its own tools (BGSAVE)')
    return 1
  }
  if (!existsSync(dirname(file))) {
    terminal.err(`sluice: the folder "${dirname(file)}" does not exist: create it first`)
    return 1
  }
  const stats = lstatSync(file, { throwIfNoEntry: false })
  if (stats !== undefined) {
    const problem = stats.isDirectory()
      ? `"${file}" is a folder: name a file in it`
      : `the file "${file}" exists already: choose another name or remove it first`
    terminal.err(`sluice: ${problem}`)
    return 1
  }
  return reporting(terminal, async () => {
    const { bytes, accounts, keys, entries } = await backupSqlite(path, file, (copied, all) =>
      terminal.err(`sluice: ${megabytes(copied)} of about ${megabytes(all)} copied so far`),
    )
    const held = [
      counted(accounts, 'account'),
      counted(keys, 'key'),
      counted(entries, 'ledger entry', 'ledger entries'),
    ]
    terminal.out(`${file}: ${bytes} bytes, ${held.join(', ')}`)
    return 0
  })
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(1)} MiB`
}
