/**
 * Goal: settings are merged into files of users: every other member, comment and line stays, in its order,
 * and merging again changes nothing.
 * Method: texts as people and editors keep them; the results are read by the parser of the format, and the
 * lines that may not change are compared.
 */
import { parse } from 'jsonc-parser'
import { parse as parseYaml } from 'yaml'
import t, { type Test } from 'tap'
import { mergeSettings } from '../../../src/config/connect/merge-settings.js'
import { mergeToml } from '../../../src/config/connect/merge-toml.js'
import type { ClientFile } from '../../../src/config/client-settings.js'
import type { JsonObject } from '../../../src/base/json.js'

type File = Pick<ClientFile, 'format' | 'settings' | 'initial'>

/** Merges, and again; checks that all lines but these are still there in their order. */
function merged(t: Test, file: File, former: string, replaced: readonly string[] = []): string {
  const text = mergeSettings(file, former)
  t.equal(mergeSettings(file, text), text, 'merging again changes nothing')
  const lines = text.split('\n')
  let at = 0
  for (const line of former.split('\n')) {
    if (replaced.includes(line.trim()) || line.trim() === '') continue
    const found = lines.indexOf(line, at)
    t.ok(found >= 0, `the line ${JSON.stringify(line)} stays in its place`)
    at = Math.max(at, found)
  }
  return text
}

const ENV: File = { format: 'json', settings: { env: { URL: 'http://x', MODEL: 'm' }, top: 1 } }

void t.test('JSON keeps members, comments, indent and line ends', (t) => {
  const former = [
    '// mine',
    '{',
    '\t"first": [1, 2], // kept',
    '\t"env": {',
    '\t\t"OTHER": "1", /* kept */',
    '\t\t"URL": "http://old"',
    '\t},',
    '\t"last": { "a": true },',
    '}',
  ].join('\n')
  const text = merged(t, ENV, former, ['"URL": "http://old"', '"last": { "a": true },'])
  t.same(parse(text), {
    first: [1, 2],
    env: { OTHER: '1', URL: 'http://x', MODEL: 'm' },
    last: { a: true },
    top: 1,
  })
  t.match(text, /\n\t\t"MODEL": "m"/, 'new members have the indent of the file')
  const crlf = mergeSettings(ENV, '{\r\n  "a": 1\r\n}\r\n')
  t.notMatch(crlf, /[^\r]\n/, 'new lines end as those of the file')
  t.end()
})

void t.test('new JSON files, empty ones and members of other types', (t) => {
  const whole = { env: { URL: 'http://x', MODEL: 'm' }, top: 1 }
  for (const former of [null, '', '{}', '{ }\n']) t.same(parse(mergeSettings(ENV, former)), whole)
  t.same(parse(mergeSettings(ENV, '{"env": null, "top": {"x": 1}}')), whole)
  const initial: File = { format: 'json', settings: { a: 1 }, initial: { $schema: 's', kept: 1 } }
  t.same(Object.entries(parse(mergeSettings(initial, null)) as object), [
    ['$schema', 's'],
    ['kept', 1],
    ['a', 1],
  ])
  t.match(parse(mergeSettings(initial, '{"kept": 2}')), { $schema: 's', kept: 2, a: 1 })
  for (const bad of ['{', '[1]', '"text"', '{"a": }', 'x']) {
    t.throws(() => mergeSettings(ENV, bad), { name: 'SettingsError' }, bad)
  }
  t.end()
})

const MODELS: JsonObject = {
  list: [
    { name: 'one', size: 1, more: { a: 1 } },
    { name: 'two', size: 2 },
  ],
}

void t.test('entries of lists are known by their name', (t) => {
  const before = { list: [{ name: 'zero' }, { name: 'two', size: 9, own: true }] }
  const after = {
    list: [{ name: 'zero' }, { name: 'two', size: 2, own: true }, { name: 'one', size: 1, more: { a: 1 } }],
  }
  const json = mergeSettings({ format: 'json', settings: MODELS }, JSON.stringify(before))
  t.same(parse(json), after)
  t.equal(mergeSettings({ format: 'json', settings: MODELS }, json), json)
  const yaml = 'list:\n- name: zero # kept\n- name: two\n  size: 9\n  own: true\n'
  const text = merged(t, { format: 'yaml', settings: MODELS }, yaml, ['size: 9'])
  t.same(parseYaml(text), after)
  t.same(parse(mergeSettings({ format: 'json', settings: MODELS }, '{"list": []}')), MODELS)
  t.end()
})

void t.test('YAML keeps comments, order, quotes and long lines', (t) => {
  const long = `note: ${'word '.repeat(60).trim()}`
  const former = [
    '# mine',
    'first: "quoted" # kept',
    long,
    '',
    'endpoints:',
    '  # about custom',
    '  custom:',
    "    - name: 'Other'",
    '      models: { default: [a, b] }',
    'model: old',
    '',
  ].join('\n')
  const settings: JsonObject = { model: 'new', endpoints: { custom: [{ name: 'Sluice', key: '${K}' }] } }
  const text = merged(t, { format: 'yaml', settings }, former, ['model: old', 'models: { default: [a, b] }'])
  t.match(parseYaml(text), { first: 'quoted', model: 'new', endpoints: { custom: [{}, { key: '${K}' }] } })
  t.same(parseYaml(mergeSettings({ format: 'yaml', settings }, '# only a comment\n')), settings)
  for (const bad of ['- a\n', 'a: [\n', 'text\n']) {
    t.throws(() => mergeSettings({ format: 'yaml', settings }, bad), { name: 'SettingsError' }, bad)
  }
  t.end()
})

const PROVIDER: JsonObject = {
  model: 'm',
  provider: 'sluice',
  providers: { sluice: { url: 'http://x', 'key name': 'K', list: ['a'] } },
}

void t.test('TOML keeps every line that is not a value of the settings', (t) => {
  const former = [
    '# mine',
    'model = "old" # kept',
    'text = """',
    '[providers.sluice] "quoted',
    'model = 1',
    '"""',
    'list = [ # kept',
    '  "]", \'[\',',
    '] # end',
    '',
    '[providers.other]',
    'url = "http://other"',
    '',
    '[[rules]]',
    'model = "x"',
    '',
    '[ providers . "sluice" ] # mine',
    "url = 'http://old' # kept",
    'own = { a = 1, b = [2] }',
    '',
    '[last]',
    'model = "z"',
  ].join('\n')
  const changed = ['model = "old" # kept', "url = 'http://old' # kept"]
  const text = merged(t, { format: 'toml', settings: PROVIDER }, former, changed)
  t.match(text, 'model = "m" # kept\n')
  t.match(text, '] # end\nprovider = "sluice"\n')
  t.match(text, 'url = "http://x" # kept\nown = { a = 1, b = [2] }\n"key name" = "K"\nlist = ["a"]\n\n[last]')
  t.end()
})

void t.test('TOML: new files, files with tables only, without a last line break, with CRLF', (t) => {
  const whole = [
    ...['model = "m"', 'provider = "sluice"', '', '[providers.sluice]'],
    ...['url = "http://x"', '"key name" = "K"', 'list = ["a"]', ''],
  ].join('\n')
  t.equal(mergeToml('', PROVIDER), whole)
  t.equal(mergeToml('[a]\nb = 1', { c: 2 }), 'c = 2\n\n[a]\nb = 1')
  t.equal(mergeToml('a = 1', { t: { c: 2 } }), 'a = 1\n\n[t]\nc = 2\n')
  t.equal(mergeToml('# only\n', { c: 2 }), '# only\nc = 2\n')
  t.equal(mergeToml('[t]\n# empty\n[u]\n', { t: { c: 2 } }), '[t]\nc = 2\n# empty\n[u]\n')
  t.equal(mergeToml('a = 1\r\n', { b: 2 }), 'a = 1\r\nb = 2\r\n')
  t.equal(mergeToml('a = 1\nb = "x#y" # c\n', { b: 2 }), 'a = 1\nb = 2 # c\n')
  t.end()
})

void t.test('TOML that cannot be changed line by line is refused, never broken', (t) => {
  for (const former of [
    'providers = { sluice = { url = "x" } }\n',
    '[providers]\nsluice = { url = "x" }\n',
    'providers.sluice.own = 1\n',
  ]) {
    t.throws(() => mergeToml(former, PROVIDER), /without a table/, former)
  }
  for (const former of ['a\n', '= 1\n', 'a = [1\n', '[a\n"\n']) {
    t.throws(() => mergeToml(former, PROVIDER), { name: 'SettingsError' }, former)
  }
  t.end()
})

void t.test('variables of .env', (t) => {
  const file: File = { format: 'dotenv', settings: { URL: 'http://x/v1', MODEL: 'a b' } }
  t.equal(mergeSettings(file, null), 'URL=http://x/v1\nMODEL="a b"\n')
  const former = '# mine\nexport URL = "old"\nURL2=x\nLAST=$1'
  const text = merged(t, file, former, ['export URL = "old"'])
  t.equal(text, '# mine\nexport URL=http://x/v1\nURL2=x\nLAST=$1\nMODEL="a b"\n')
  t.end()
})
