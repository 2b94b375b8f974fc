/** `sluice cassettes`: writes recordings as files for `sluice emulate --cassette`. */
import { counted } from '../base/counted.js'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { cassetteOf } from '../policy/encrypted-recordings.js'
import { configOption, declare, repeated } from './command.js'
import { TIME_FORMS } from './time-range.js'
import { missing, readRecording, selectedHeads, withRecordings, type RecordingOptions } from './recordings.js'

/** `sluice cassettes`. */
export function command() {
  const cassettes = declare({
    name: 'cassettes',
    summary: 'export recordings for sluice emulate --cassette',
    description: `
Writes the upstream's side of recordings as DIR/ID.json, without secrets, and prints the number of files.`,
    exitStatus: '0 success, 1 failure or no such recording, 2 wrong usage.',
    example: `
sluice cassettes export --config config/gateway.yaml --to cassettes --since 1h
sluice emulate --cassette cassettes --port 9100`,
  })
  cassettes
    .command('export')
    .requiredOption('--to <DIR>', 'the folder, created if it does not exist')
    .option('--id <ID>', 'only this recording; may be repeated', repeated)
    .option('--since <TIME>', TIME_FORMS)
    .option('--account <ACCOUNT>', 'only recordings of the account with this name, id or e-mail address')
    .addOption(configOption())
    .action(async (options) => {
      process.exitCode = await exportCassettes(options)
    })
  return cassettes
}

interface CassetteOptions extends RecordingOptions {
  readonly config: string
  readonly to: string
  readonly id?: readonly string[] | undefined
}

function exportCassettes({ config, to, id: ids, ...selection }: CassetteOptions): Promise<number> {
  return withRecordings(config, async (opened) => {
    const selected = ids ?? (await selectedHeads(opened, selection))?.map(({ id }) => id)
    if (selected === undefined) return 1
    await mkdir(to, { recursive: true })
    let files = 0
    for (const id of selected) {
      const found = await readRecording(opened, id)
      if (found === null) return missing(opened, id)
      const cassette = cassetteOf(found.recording)
      if (cassette === null) continue
      if (cassette === 'redacted') {
        opened.session.terminal.err(
          `The reply of ${id} is redacted, so that nothing can replay it: not exported.`,
        )
        continue
      }
      await writeFile(join(to, `${id}.json`), `${JSON.stringify(cassette, null, 2)}\n`, {
        mode: 0o600,
      })
      files += 1
    }
    opened.session.terminal.out(`Wrote ${counted(files, 'cassette')} to ${to}.`)
    return 0
  })
}
