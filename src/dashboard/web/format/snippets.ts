/**
 * A request as code for a shell, Python and JavaScript. The code runs without changes and without packages.
 * Pure.
 */
import { KEY_PLACEHOLDER, type FormattedRequest } from './request-formats.js'

/** The languages in display order. */
export const LANGUAGES = ['curl', 'Python', 'JavaScript'] as const

/** The name of a language. */
export type Language = (typeof LANGUAGES)[number]

/** The request in a language. */
export function snippet(language: Language, request: FormattedRequest): string {
  switch (language) {
    case 'curl':
      return curl(request)
    case 'Python':
      return python(request)
    case 'JavaScript':
      return javascript(request)
  }
}

/** Uses double quotes around the key's variable, so that the shell expands it. */
function curl({ url, headers, body }: FormattedRequest): string {
  const lines = [...headers, JSON_TYPE].map(([name, value]) => {
    const quote = value.includes(KEY_PLACEHOLDER) ? '"' : "'"
    return `  -H ${quote}${name}: ${value}${quote} \\`
  })
  const json = JSON.stringify(body).replaceAll("'", "'\\''")
  return [`curl ${url} \\`, ...lines, `  -d '${json}'`].join('\n')
}

function python({ url, headers, body }: FormattedRequest): string {
  const all = [...headers, JSON_TYPE]
  const values = all.map(([name, value]) => {
    return `        ${JSON.stringify(name)}: ${withKey(value, 'os.environ["SLUICE_KEY"]')},`
  })
  const hasKey = all.some(([, value]) => value.includes(KEY_PLACEHOLDER))
  return [
    `import json${hasKey ? ', os' : ''}, urllib.request`,
    '',
    `body = ${pythonText(body)}`,
    'request = urllib.request.Request(',
    `    ${JSON.stringify(url)},`,
    '    data=json.dumps(body).encode(),',
    '    headers={',
    ...values,
    '    },',
    ')',
    'with urllib.request.urlopen(request) as reply:',
    '    print(json.dumps(json.load(reply), indent=2))',
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

function javascript({ url, headers, body }: FormattedRequest): string {
  const values = [...headers, JSON_TYPE].map(([name, value]) => {
    return `    ${JSON.stringify(name)}: ${withKey(value, 'process.env.SLUICE_KEY')},`
  })
  return [
    `const reply = await fetch(${JSON.stringify(url)}, {`,
    "  method: 'POST',",
    '  headers: {',
    ...values,
    '  },',
    `  body: JSON.stringify(${JSON.stringify(body)}),`,
    '})',
    'console.log(JSON.stringify(await reply.json(), null, 2))',
  ].join('\n')
}

const JSON_TYPE = ['content-type', 'application/json'] as const

/** A text of code with a variable instead of the key. */
function withKey(value: string, variable: string): string {
  const [before = '', after] = value.split(KEY_PLACEHOLDER)
  if (after === undefined) return JSON.stringify(value)
  return before === '' ? variable : `${JSON.stringify(before)} + ${variable}`
}
