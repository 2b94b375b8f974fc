/** Shows the settings of a client: as text for a person, and as JSON. Contains no key. */
import {
  helperCommand,
  shellWord,
  type Client,
  type ClientFile,
  type ClientSettings,
  type ConnectionTarget,
} from '../client-settings.js'
import type { JsonObject } from '../../base/json.js'
import { mergeSettings } from './merge-settings.js'

/** The JSON of `sluice connect --json`. */
export function clientJson(client: Client, target: ConnectionTarget): JsonObject {
  const { baseUrl, env, files, steps, notes } = client.settings(target)
  return {
    client: client.name,
    title: client.title,
    base_url: baseUrl,
    model: target.models[0].id,
    env: { ...env },
    files: files.map((file) => ({
      path: file.path,
      format: file.format,
      content: mergeSettings(file, null),
      merge: true,
    })),
    steps: [...steps],
    notes: [...notes],
    helper: target.byLogin === true ? helperCommand(target) : null,
  }
}

/** The same as text. */
export function clientText(client: Client, target: ConnectionTarget): string {
  const settings = client.settings(target)
  const { baseUrl, files, steps, notes } = settings
  const { keyEnv } = target
  return [
    `${client.title}: ${baseUrl}, model ${target.models[0].id}`,
    ...section(`Variables (${keyEnv} holds the key)`, variableLines(settings, keyEnv)),
    ...files.flatMap((file) => section(fileTitle(file), mergeSettings(file, null).trimEnd().split('\n'))),
    ...section('Steps', steps),
    ...section('Notes', notes),
  ].join('\n')
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', title, ...lines.map((line) => (line === '' ? '' : `  ${line}`))]
}

function variableLines({ env }: ClientSettings, keyEnv: string): string[] {
  return Object.entries(env).map(([name, value]) => {
    if (name === keyEnv) return `export ${name}='…'`
    return `export ${name}=${value === `\${${keyEnv}}` ? `"$${keyEnv}"` : shellWord(value)}`
  })
}

function fileTitle({ path }: ClientFile): string {
  return `${path} (these members; --write merges them into the file)`
}
