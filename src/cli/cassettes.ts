/** `sluice cassettes`: writes recordings as files for `sluice emulate --cassette`. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { cassetteOf } from '../policy/recording.js'
import type { Command } from './command.js'
import { missing, readRecording, selectedHeads, withRecordings } from './recordings.js'
import { UsageError } from './usage-error.js'

/** `sluice cassettes`. */
export const command: Command = {
  name: 'cassettes',
  summary: 'export recordings for sluice emulate --cassette',
  help: `
Usage: sluice cassettes export --to DIR [--id ID]... [--since TIME] [--account ACCOUNT] [--config FILE]

Writes the upstream's side of recordings as DIR/ID.json, without secrets, and prints the number of files.

Options:
  --config FILE      the configuration file (default: the variable SLUICE_CONFIG)
  --to DIR           the folder, created if it does not exist
  --id ID            only this recording; may be repeated
  --account ACCOUNT  only recordings of the account with this id or e-mail address
  --since TIME       a date or time (2026-11-20, 2026-11-20T08:00:00Z), or a duration before now (90m, 24h, 7d)

Exit status: 0 success, 1 failure or no such recording, 2 wrong usage.

Example:
  sluice cassettes export --config config/gateway.yaml --to cassettes --since 1h
  sluice emulate --cassette cassettes --port 9100
`,
  run(argv) {
    const { values, positionals } = parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        config: { type: 'string' },
        to: { type: 'string' },
        id: { type: 'string', multiple: true },
        account: { type: 'string' },
        since: { type: 'string' },
      },
    })
    const { to, id: ids } = values
    if (positionals.length !== 1 || positionals[0] !== 'export') {
      throw new UsageError("'sluice cassettes' needs one of: export")
    }
    if (to === undefined || to === '') {
      throw new UsageError("'sluice cassettes export' needs --to DIR")
    }
    return withRecordings('sluice cassettes', values.config, async (opened) => {
      const selected = ids ?? (await selectedHeads(opened, values))?.map(({ id }) => id)
      if (selected === undefined) return 1
      await mkdir(to, { recursive: true })
      let files = 0
      for (const id of selected) {
        const found = await readRecording(opened, id)
        if (found === null) return missing(opened, id)
        const cassette = cassetteOf(found.recording)
        if (cassette === null) continue
        await writeFile(join(to, `${id}.json`), `${JSON.stringify(cassette, null, 2)}\n`, {
          mode: 0o600,
        })
        files += 1
      }
      opened.session.terminal.out(String(files))
      return 0
    })
  },
}
