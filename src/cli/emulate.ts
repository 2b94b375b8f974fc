/** `sluice emulate`: the providers' wire formats on a local port, with faults on request. */
import { once } from 'node:events'
import { Cassettes } from '../emulator/cassettes.js'
import { FAULTS } from '../emulator/faults/fault-table.js'
import { startEmulator } from '../emulator/server.js'
import { messageWithAdvice } from '../base/file-access.js'
import { declare, UsageError } from './command.js'
import type { Emulator } from '../emulator/server.js'

function settingsOf(row: { fields: readonly string[]; modes?: readonly string[] }): string {
  const fields = row.fields.map((field) =>
    field === 'mode' ? `mode=${row.modes?.join('|') ?? ''}` : `${field}=`,
  )
  return fields.length === 0 ? '' : ` (${fields.join(' ')})`
}

/** `sluice emulate`. */
export function command() {
  return declare({
    name: 'emulate',
    summary: 'emulate the providers, with faults on request',
    description: DESCRIPTION,
    example: `
sluice emulate --port 9100
curl -X POST localhost:9100/_emulator/script -d '{"times":3,"fault":{"kind":"status","code":529}}'`,
  })
    .option('--port <P>', 'the port; 0: any free one', wholeNumber('--port', 65_535), 0)
    .option('--host <H>', 'the address to listen on', '127.0.0.1')
    .option(
      '--pace-ms <MS>',
      'milliseconds between the events of a stream (default: 0)',
      wholeNumber('--pace-ms', 60_000),
    )
    .option('--any-model', "accept every model id, not only those of the providers' families")
    .option(
      '--cassette <P>',
      "replay the recorded replies in the file or folder P ('sluice cassettes export'), at their times or with --pace-ms between chunks; any other request gets 404",
      cassettesIn,
    )
    .option('--json', 'print the addresses as one line of JSON')
    .action(async ({ port, host, paceMs, cassette, anyModel, json }) => {
      const emulator = await startEmulator({
        port,
        host,
        ...(paceMs === undefined ? {} : { paceMs }),
        ...(cassette === undefined ? {} : { cassettes: cassette }),
        models: anyModel ? 'any' : 'known',
      })
      console.log(json ? asJson(emulator) : asText(emulator))
      await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
      await emulator.close()
    })
}

const DESCRIPTION = `
Emulates OpenAI, Anthropic, Gemini and Bedrock without a model, for demos and tests of clients and gateways.
Every reply states that it is emulated.

Any key is accepted, except one that contains the word 'invalid'. Requests to Bedrock with a signature need the
keys AKIDEXAMPLE and example, or keys from the token endpoints: STS (/sts), /aws/container, the metadata
services, Google (/google/token), Entra and App Service (/azure/identity), IBM Cloud (/ibm/identity/token).
A prompt may contain directives: [[fault: cut bytes=120 mode=reset]] [[words: 50]] [[pace: 20]]
Faults:
${Object.entries(FAULTS)
  .map(([kind, row]) => `  ${kind.padEnd(13)} ${row.meaning}${settingsOf(row)}`)
  .join('\n')}`

function cassettesIn(path: string): Cassettes {
  try {
    return new Cassettes(path)
  } catch (error) {
    const reason = error instanceof Error ? messageWithAdvice(error) : String(error)
    throw new UsageError(`--cassette cannot be read: ${reason}`)
  }
}

function wholeNumber(name: string, max: number): (text: string) => number {
  return (text) => {
    const number = Number(text)
    if (text !== '' && Number.isInteger(number) && number >= 0 && number <= max) return number
    throw new UsageError(`${name} must be a whole number from 0 to ${max}, not "${text}"`)
  }
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
