/** `guardrails`: servers with LiteLLM's generic protocol, moderation, and secrets that are masked. */
import { isObject, type JsonObject } from '../../../base/json.js'
import { isForeignReference, variableOf } from '../secrets.js'
import { isTrue, mapAt, textAt, textsIn, type ImportContext } from './context.js'

/** The section `guardrails` by name. */
export function readGuardrails(config: JsonObject, context: ImportContext): JsonObject {
  const { report } = context
  const found: JsonObject = {}
  const list = Array.isArray(config['guardrails']) ? config['guardrails'] : []
  for (const [index, entry] of list.entries()) {
    const at = ['guardrails', index]
    if (!isObject(entry)) continue
    const params = mapAt(entry, 'litellm_params')
    const source = sourceOf(params, context)
    if (source === null) {
      report.notCarried(
        at,
        'no such guardrail here: use patterns, detect, or a server with the generic protocol',
      )
      continue
    }
    const name = freeName(entry['guardrail_name'], found)
    const sides = sidesOf(params)
    const applies = isTrue(params['default_on'])
    found[name] = {
      ...source,
      ...(sides.length === 0 ? {} : { on: sides }),
      ...(applies ? { apply_to: { all: true } } : {}),
    }
    report.changed(at, `guardrails.${name}`, 'clients cannot choose it: name it in routes, or in apply_to')
    if (applies) report.carried(at, `guardrails.${name}`)
  }
  return Object.keys(found).length === 0 ? {} : { guardrails: found }
}

function sourceOf(params: JsonObject, context: ImportContext): JsonObject | null {
  const address = params['api_base']
  const isAddress = typeof address === 'string' && (variableOf(address) !== null || isPlainUrl(address))
  const url = isAddress ? context.secrets.place(address, 'GUARDRAIL_URL') : null
  const text = url === null ? null : url.isLiteral ? textAt(params, 'api_base') : url.text
  switch (params['guardrail']) {
    case 'generic_guardrail_api':
      return text === null ? null : { url: text, protocol: 'litellm', ...keyOf(params, context) }
    case 'openai_moderation':
      return {
        url: text ?? 'https://api.openai.com/v1',
        protocol: 'moderations',
        headers: { authorization: `Bearer ${keyText(params, context, 'OPENAI_API_KEY')}` },
      }
    case 'hide-secrets':
      return { patterns: [...SECRETS], action: 'mask' }
    default:
      return null
  }
}

/** The built-in rules for secrets. */
const SECRETS = [
  'aws_access_key',
  'private_key',
  'github_token',
  'slack_token',
  'google_api_key',
  'llm_api_key',
  'stripe_key',
  'jwt',
] as const

function isPlainUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { username, password, search } = new URL(text)
  return username === '' && password === '' && search === ''
}

function keyOf(params: JsonObject, context: ImportContext): JsonObject {
  if (typeof params['api_key'] !== 'string') return {}
  return { headers: { authorization: `Bearer ${keyText(params, context, 'GUARDRAIL_API_KEY')}` } }
}

function keyText({ api_key: key }: JsonObject, { secrets }: ImportContext, usual: string): string {
  const isGiven = typeof key === 'string' && key !== '' && !isForeignReference(key)
  return isGiven ? secrets.place(key, usual).text : `\${${usual}}`
}

function sidesOf({ mode }: JsonObject): string[] {
  const modes = textsIn(mode)
  return [
    ...(modes.some((each) => each === 'pre_call' || each === 'during_call') ? ['request'] : []),
    ...(modes.includes('post_call') ? ['response'] : []),
  ]
}

function freeName(value: unknown, taken: JsonObject): string {
  const text =
    typeof value === 'string' ? value.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[^A-Za-z0-9]+/, '') : ''
  const start = text.slice(0, 60) === '' ? 'guardrail' : text.slice(0, 60)
  let name = start
  for (let number = 2; Object.hasOwn(taken, name); number += 1) name = `${start}-${number}`
  return name
}
