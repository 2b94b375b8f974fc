/**
 * Goal: the steps against the emulator in the how-to of each cloud work as written.
 * Method: the page's variables, configuration and request are read from the page; only the ports differ.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { isObject, objectOf, stringOf } from '../../../src/base/json.js'
import { startEmulator } from '../../../src/emulator/server.js'
import { startGateway } from '../../helpers/gateway.js'

const PAGES = ['use-bedrock', 'use-vertex-ai', 'use-azure']

/** The code blocks of the section about the emulator. */
function blocksOf(page: string): { language: string; text: string }[] {
  const text = readFileSync(`docs/how-to/${page}.md`, 'utf8')
  const section = text.slice(text.indexOf('against the emulator'))
  return [...section.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = '', block = '']) => {
    return { language, text: block }
  })
}

for (const page of PAGES) {
  void t.test(`${page}: the steps against the emulator`, async (t) => {
    const emulator = await startEmulator({ models: 'any' })
    t.teardown(() => emulator.close())
    const blocks = blocksOf(page).map(({ language, text }) => {
      return { language, text: text.replaceAll('127.0.0.1:9100', `127.0.0.1:${emulator.port}`) }
    })
    const shell = blocks.filter(({ language }) => language === 'sh').map(({ text }) => text)
    for (const [, name = '', value = ''] of shell.join('').matchAll(/\b([A-Z_]+)=(\S+)/g)) {
      process.env[name] = value
      t.teardown(() => Reflect.deleteProperty(process.env, name))
    }
    const yaml = blocks.find(({ language }) => language === 'yaml')?.text ?? ''
    const { upstreams, routes } = objectOf(parse(yaml))
    const [upstream] = Object.values(objectOf(upstreams ?? {}))
    const prefixes = (Array.isArray(routes) ? routes : []).map(
      (route) => stringOf(objectOf(route).prefix) ?? '',
    )
    if (!isObject(upstream ?? null)) throw new Error(`${page} has no upstream`)
    const cloud = stringify(upstream, { collectionStyle: 'flow' })
      .trim()
      .replace(/^\{|\}$/g, '')
    const [, path = '', body = ''] = /:8080(\S+) [^']*.*?-d '([^']+)'/s.exec(shell.join('')) ?? []
    const request = objectOf(JSON.parse(body))
    const model = stringOf(request.model) ?? ''
    t.ok(prefixes.some((prefix) => model.startsWith(prefix)))
    const gateway = await startGateway(t, {
      cloud: cloud.replaceAll('\n', ' '),
      routes: `  - { model: '${model}', upstream: cloud }`,
    })
    const reply = await fetch(gateway.origin + path, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-api-key': gateway.secret,
        'anthropic-version': '2023-06-01',
      },
      body,
    })
    const text = await reply.text()
    t.equal(reply.status, 200, text)
    t.equal(reply.headers.get('x-sluice-upstream'), 'cloud')
  })
}
