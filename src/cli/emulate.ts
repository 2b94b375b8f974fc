/** `sluice emulate`: the providers' wire formats on a local port, with faults on request. */
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { Cassettes } from '../emulator/cassettes.js'
import { FAULTS } from '../emulator/faults/fault-table.js'
import { startEmulator } from '../emulator/server.js'
import { UsageError } from './usage-error.js'
import { type Command } from './command.js'
import type { Emulator } from '../emulator/server.js'

const HELP = `
Usage: sluice emulate [--port P] [--host H] [--pace-ms MS] [--any-model] [--cassette FILE|DIR] [--json]

Emulates OpenAI, Anthropic, Gemini and Bedrock without a model, for demos and tests of clients and gateways. Every reply
states that it is emulated.

  --port P       the port (default 0: any free one)
  --host H       the address to listen on (default 127.0.0.1)
  --pace-ms MS   milliseconds between the events of a stream (default 0)
  --any-model    accept every model id, not only those of the providers' families
  --cassette P   replay the recorded replies in the file or folder P ('sluice cassettes export'), at their times or
                 with --pace-ms between chunks; any other request gets 404
  --json         print the addresses as one line of JSON

Any key is accepted, except one that contains the word 'invalid'. Requests to Bedrock with a signature need the
keys AKIDEXAMPLE and example, or keys from the token endpoints: STS (/sts), /aws/container, the metadata services,
Google (/google/token), Entra and App Service (/azure/identity).
A prompt may contain directives: [[fault: cut bytes=120 mode=reset]] [[words: 50]] [[pace: 20]]
Faults:
${Object.entries(FAULTS)
  .map(([kind, row]) => `  ${kind.padEnd(13)} ${row.meaning}${settingsOf(row)}`)
  .join('\n')}

Exit status: 0 success, 1 failure, 2 wrong usage.

Example:
  sluice emulate --port 9100
  curl -X POST localhost:9100/_emulator/script -d '{"times":3,"fault":{"kind":"status","code":529}}'
`

function settingsOf(row: { fields: readonly string[]; modes?: readonly string[] }): string {
  const fields = row.fields.map((field) =>
    field === 'mode' ? `mode=${row.modes?.join('|') ?? ''}` : `${field}=`,
  )
  return fields.length === 0 ? '' : ` (${fields.join(' ')})`
}

/** `sluice emulate`. */
export const command: Command = {
  name: 'emulate',
  summary: 'emulate the providers, with faults on request',
  help: HELP,
  async run(argv) {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        port: { type: 'string', default: '0' },
        host: { type: 'string', default: '127.0.0.1' },
        'pace-ms': { type: 'string' },
        cassette: { type: 'string' },
        'any-model': { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
      },
    })
    const { 'pace-ms': pace, cassette } = values
    const emulator = await startEmulator({
      port: wholeNumber('--port', values.port, 65_535),
      host: values.host,
      ...(pace === undefined ? {} : { paceMs: wholeNumber('--pace-ms', pace, 60_000) }),
      ...(cassette === undefined ? {} : { cassettes: cassettesIn(cassette) }),
      models: values['any-model'] ? 'any' : 'known',
    })
    console.log(values.json ? asJson(emulator) : asText(emulator))
    await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
    await emulator.close()
    return 0
  },
}

function cassettesIn(path: string): Cassettes {
  try {
    return new Cassettes(path)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new UsageError(`--cassette cannot be read: ${reason}`)
  }
}

function wholeNumber(name: string, text: string, max: number): number {
  const number = Number(text)
  if (text === '' || !Number.isInteger(number) || number < 0 || number > max) {
    throw new UsageError(`${name} must be a whole number from 0 to ${max}, not "${text}"`)
  }
  return number
}

function asJson({ port, origin, baseUrls }: Emulator): string {
  return JSON.stringify({ port, origin, base_urls: baseUrls })
}

function asText({ origin, baseUrls }: Emulator): string {
  return `
Emulated providers, without models:
  OpenAI     ${baseUrls.openai}
  Anthropic  ${baseUrls.anthropic}
  Gemini     ${baseUrls.gemini}
  Vertex AI  ${origin} (platform: vertex; metadata server: GCE_METADATA_HOST)
  Azure      ${origin} (platform: azure; token: IDENTITY_ENDPOINT=${origin}/azure/identity)
  Bedrock    ${baseUrls.bedrock}

To point a gateway here:
  upstreams:
    openai:    { dialect: openai, base_url: ${baseUrls.openai}, api_key: emulated }
    anthropic: { dialect: anthropic, base_url: ${baseUrls.anthropic}, api_key: emulated }
    google:    { dialect: gemini, base_url: ${baseUrls.gemini}, api_key: emulated }

Set faults for the next requests:
  curl -X POST ${origin}/_emulator/script -d '{"times":3,"fault":{"kind":"status","code":529,"retry-after":"2"}}'
  curl -X DELETE ${origin}/_emulator/script
Faults inside a prompt: [[fault: cut bytes=120 mode=reset]]  List: ${origin}/_emulator/faults
Received requests: ${origin}/_emulator/ledger
Stop with Ctrl-C.
`.trim()
}
