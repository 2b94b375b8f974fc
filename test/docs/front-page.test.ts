/**
 * Goal: the README names every section of the configuration among the features, and denies none that exists.
 * Method: the sections of the JSON Schema against the table of features; the links of the table.
 */
import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'
import * as z from 'zod'

const readme = readFileSync('README.md', 'utf8')
const [, features = ''] = /## What it does\n([\s\S]*?)\n## /.exec(readme) ?? []

void t.test('the table of features has every section of the configuration', (t) => {
  const { properties } = z
    .looseObject({ properties: z.record(z.string(), z.unknown()) })
    .parse(JSON.parse(readFileSync('config/schema.json', 'utf8')))
  const named = new Set([...features.matchAll(/`(\w+)`/g)].map(([, name]) => name))
  for (const name of Object.keys(properties)) t.ok(named.has(name), `${name} is a setting of a feature`)
  for (const name of named) t.ok(name !== undefined && name in properties, `${String(name)} exists`)
  t.end()
})

void t.test('no page denies a feature that exists', (t) => {
  const pages = [
    'README.md',
    'docs/how-to/move-from-litellm-or-portkey.md',
    'docs/explanation/security-model.md',
  ]
  const denials =
    /\b(?:no|has no|without|lacks) (?:response )?(?:guardrails|cach(?:e|ing)|recordings|plugins)\b|are not inspected\./i
  for (const page of pages) t.notMatch(readFileSync(page, 'utf8'), denials, page)
  const [choice = ''] = /Choose another gateway if [^\n]*/.exec(readme) ?? []
  t.ok(choice !== '')
  t.notMatch(choice, /guardrails|response caching|recording|plugin/i)
  t.end()
})

void t.test('the pages of the features exist', (t) => {
  const links = [...features.matchAll(/\]\(([^)#]+)/g)].map(([, path = '']) => path)
  t.ok(links.length > 15)
  for (const path of links) t.ok(existsSync(path), path)
  t.end()
})
