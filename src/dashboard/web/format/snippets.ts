/** Lines to paste that call the gateway, for the ways that developers begin. */

/** What a snippet calls, and with which key. */
export interface Target {
  /** The address that clients use, with `/v1`. */
  readonly base: string
  readonly model: string
  /** The secret itself, while it is shown, or what stands for it. */
  readonly key: string
}

/** Stands for a key that is not known here. */
export const KEY_PLACE = '$SLUICE_KEY'

/** The address of the gateway as clients know it. */
export function baseOf(publicUrl: string | null): string {
  return `${(publicUrl ?? window.location.origin).replace(/\/$/, '')}/v1`
}

/** The messages and settings of a call, as JSON members. */
export type Body = Readonly<Record<string, unknown>>

/** A first call. */
export const HELLO: Body = { messages: [{ role: 'user', content: 'Name three rivers.' }] }

/** For a shell. */
export function curl({ base, model, key }: Target, body: Body = HELLO): string {
  const json = JSON.stringify({ model, ...body }).replaceAll("'", "'\\''")
  const quote = key === KEY_PLACE ? '"' : "'"
  return [
    `curl ${base}/chat/completions \\`,
    `  -H ${quote}authorization: Bearer ${key}${quote} \\`,
    `  -H 'content-type: application/json' \\`,
    `  -d '${json}'`,
  ].join('\n')
}

/** For Python, with OpenAI's package. */
export function python({ base, model, key }: Target, body: Body = HELLO): string {
  const isPlace = key === KEY_PLACE
  const secret = isPlace ? 'os.environ["SLUICE_KEY"]' : `"${key}"`
  return [
    ...(isPlace ? ['import os', ''] : []),
    'from openai import OpenAI',
    '',
    `client = OpenAI(base_url="${base}", api_key=${secret})`,
    'reply = client.chat.completions.create(',
    `    model=${JSON.stringify(model)},`,
    ...Object.entries(body).map(([name, value]) => `    ${name}=${pythonText(value)},`),
    ')',
    'print(reply.choices[0].message.content)',
  ].join('\n')
}

function pythonText(value: unknown): string {
  if (value === true) return 'True'
  if (value === false) return 'False'
  if (value === null) return 'None'
  if (Array.isArray(value)) return `[${value.map(pythonText).join(', ')}]`
  if (typeof value !== 'object') return JSON.stringify(value)
  const members = Object.entries(value).map(([name, one]) => `"${name}": ${pythonText(one)}`)
  return `{${members.join(', ')}}`
}

/** For TypeScript and JavaScript, with OpenAI's package. */
export function typescript({ base, model, key }: Target, body: Body = HELLO): string {
  const secret = key === KEY_PLACE ? 'process.env.SLUICE_KEY' : `'${key}'`
  return [
    "import OpenAI from 'openai'",
    '',
    `const client = new OpenAI({ baseURL: '${base}', apiKey: ${secret} })`,
    'const reply = await client.chat.completions.create({',
    `  model: ${JSON.stringify(model)},`,
    ...Object.entries(body).map(([name, value]) => `  ${name}: ${JSON.stringify(value)},`),
    '})',
    'console.log(reply.choices[0].message.content)',
  ].join('\n')
}
