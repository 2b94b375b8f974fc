/**
 * Goal: the schema of a tool is one that the vendor takes, and the same object if it was one before.
 * Method: schemas of real tools, for each set of rules.
 */
import t from 'tap'
import { request } from '../openai-chat/driver.js'
import type { JsonObject } from '../../../src/base/json.js'
import { SCHEMA_RULES } from '../../../src/formats/vendors.js'
import { SchemaBudget } from '../../../src/formats/chat/json-schema.js'
import { enforcedSchema, fitReplySchema, fitSchema } from '../../../src/formats/wire/fit-schema.js'
import { withWireProperties } from '../../../src/formats/wire/property-names.js'

function fitted(schema: JsonObject, vendor: keyof typeof SCHEMA_RULES): [JsonObject, string[]] {
  const lost: string[] = []
  const losses = { drop: (path: string): void => void lost.push(path) }
  return [fitSchema(schema, SCHEMA_RULES[vendor], { losses }), lost]
}

void t.test('OpenAI gets arrays with items and an object as root', (t) => {
  const array = { type: 'object', properties: { k: { type: ['array', 'null'] }, items: { type: 'string' } } }
  t.same(fitted(array, 'openai'), [
    {
      type: 'object',
      properties: { k: { type: ['array', 'null'], items: {} }, items: { type: 'string' } },
    },
    [],
  ])
  t.equal(fitted(array, 'anthropic')[0], array)
  const variants = {
    anyOf: [
      { type: 'object', properties: { a: { type: 'string' } } },
      { type: 'object', properties: { b: { type: 'array' } } },
    ],
  }
  const [root, lost] = fitted(variants, 'openai')
  t.same(root, {
    type: 'object',
    properties: { a: { type: 'string' }, b: { type: 'array', items: {} } },
    required: [],
  })
  t.same(lost, ['tools.parameters'])
  t.same(fitted({ properties: {} }, 'openai'), [{ properties: {}, type: 'object' }, []])
  const plain = { type: 'object', properties: { a: { type: 'array', items: { type: 'string' } } } }
  t.equal(fitted(plain, 'openai')[0], plain)
  t.end()
})

const ANY = ['string', 'number', 'boolean', 'object', 'array', 'null']

/** Schemas of properties, as Moonshot takes them. */
const TYPED: readonly (readonly [name: string, given: JsonObject | true, sent: JsonObject, lost?: true])[] = [
  ['values of one type', { enum: ['a', 'b'] }, { type: 'string', enum: ['a', 'b'] }],
  ['values of two types', { enum: [1, 'a'] }, { type: ['integer', 'string'], enum: [1, 'a'] }],
  ['a constant', { const: 1.5 }, { type: 'number', const: 1.5 }],
  ['a pattern', { pattern: '^a' }, { type: 'string', pattern: '^a' }],
  ['an object', { properties: {} }, { type: 'object', properties: {} }],
  ['items', { type: 'array', items: {} }, { type: 'array', items: { type: ANY } }],
  ['nothing', {}, { type: ANY }],
  ['true', true, { type: ANY }],
  ['null that the type excludes', { type: 'string', enum: ['a', null] }, { type: 'string', enum: ['a'] }],
  [
    'a type beside a union',
    {
      type: 'object',
      properties: { a: {} },
      description: 'd',
      anyOf: [{ required: ['a'] }, { type: 'object' }],
    },
    {
      description: 'd',
      anyOf: [
        { type: 'object', properties: { a: { type: ANY } }, required: ['a'] },
        { type: 'object', properties: { a: { type: ANY } } },
      ],
    },
  ],
  [
    'a reference with keywords beside it',
    { $ref: '#/definitions/D', minLength: 4, title: 'D' },
    { $ref: '#/$defs/D', title: 'D' },
    true,
  ],
  ['a list of one schema', { allOf: [{ $ref: '#/definitions/D' }] }, { $ref: '#/$defs/D' }],
  [
    'oneOf',
    { oneOf: [{ const: 'a' }, {}] },
    { anyOf: [{ type: 'string', const: 'a' }, { type: ANY }] },
    true,
  ],
  [
    'additional properties',
    { type: 'object', additionalProperties: {} },
    { type: 'object', additionalProperties: {} },
  ],
]

for (const [name, given, sent, lost] of TYPED) {
  void t.test(`Moonshot gets schemas with their types: ${name}`, (t) => {
    const schema = { type: 'object', properties: { p: given }, definitions: { D: { type: 'string' } } }
    const root = { type: 'object', properties: { p: sent }, $defs: { D: { type: 'string' } } }
    t.same(fitted(schema, 'moonshot'), [root, lost === true ? ['tools.parameters'] : []])
    t.equal(fitted(root, 'moonshot')[0].properties, root.properties, 'such a schema stays')
    t.end()
  })
}

void t.test('tuples and bounds of earlier drafts become those of draft 2020-12', (t) => {
  for (const vendor of ['openai', 'anthropic', 'bedrock'] as const) {
    const pair = { type: 'array', items: [{ type: 'string' }, { type: 'number' }] }
    const parameters = {
      type: 'object',
      properties: {
        open: { ...pair, additionalItems: { type: 'null' } },
        closed: { ...pair, additionalItems: false },
        bound: { type: 'number', minimum: 1, exclusiveMinimum: true },
      },
    }
    const [schema] = fitted(parameters, vendor)
    const prefixItems = pair.items
    t.match(schema, {
      properties: {
        open: { prefixItems, items: { type: 'null' } },
        closed: { prefixItems, maxItems: 2 },
        bound: { exclusiveMinimum: 1 },
      },
    })
    t.notMatch(JSON.stringify(schema), 'additionalItems')
  }
  t.end()
})

void t.test('keywords of every draft are searched, and those of the value null are absent', (t) => {
  const list = { type: 'array' }
  const whole = { type: 'array', items: {} }
  const of = (array: JsonObject): JsonObject => ({
    type: 'object',
    properties: {
      a: { type: 'object', unevaluatedProperties: array },
      b: { not: { unevaluatedItems: array } },
    },
    dependencies: { a: { properties: { c: array } }, b: ['a'] },
  })
  t.same(fitted(of(list), 'openai'), [of(whole), []])
  t.same(fitted(of(list), 'anthropic'), [of(list), []])
  const empty = { description: null, required: null }
  const properties = { a: { type: 'array', items: null, enum: null }, n: { const: null, default: null } }
  const given = { type: 'object', ...empty, properties }
  t.same(fitted(given, 'anthropic'), [
    { type: 'object', properties: { a: list, n: { const: null, default: null } } },
    [],
  ])
  t.same(fitted(given, 'openai')[0].properties, { a: whole, n: { const: null, default: null } })
  t.end()
})

void t.test('the schema of a reply for OpenAI is fitted too, unless its root is no object', (t) => {
  const lost: string[] = []
  const losses = { drop: (path: string): void => void lost.push(path) }
  const reply = (schema: JsonObject): JsonObject => fitReplySchema(schema, SCHEMA_RULES.openai, losses)
  t.same(reply({ type: 'object', properties: { a: { type: 'array' } } }), {
    type: 'object',
    properties: { a: { type: 'array', items: {} } },
  })
  t.same(lost, [])
  const list = { type: 'array', items: { type: 'array' } }
  t.equal(reply(list), list)
  t.same(reply({ anyOf: [{ type: 'object', properties: { a: { type: 'string' } } }] }), {
    type: 'object',
    properties: { a: { type: 'string' } },
    required: [],
  })
  t.same(lost, ['response_format'])
  t.end()
})

/** Every `$ref` of a schema that does not lead to a schema in it. */
function dangling(root: JsonObject): string[] {
  const texts = [...JSON.stringify(root).matchAll(/"\$ref":"([^"]*)"/g)].map(([, ref = '']) => ref)
  return texts.filter((ref) => {
    let at: unknown = ref.startsWith('#') ? root : undefined
    for (const token of ref.split('/').slice(1)) at = (at as Record<string, unknown> | undefined)?.[token]
    return at === undefined
  })
}

const TEXT = { type: 'string', minLength: 1 }

/** Schemas with references to places that an encoder moves; each has a schema `TEXT` at `b`. */
const REFERENCES: Readonly<Record<string, JsonObject>> = {
  'an item of a tuple': {
    type: 'object',
    properties: {
      a: { type: 'array', items: [TEXT, { type: 'integer' }] },
      b: { $ref: '#/properties/a/items/0' },
    },
  },
  'a variant of the root': {
    anyOf: [
      { type: 'object', properties: { a: TEXT } },
      { type: 'object', properties: { b: { $ref: '#/anyOf/0/properties/a' } } },
    ],
  },
  'a branch of the root': {
    type: 'object',
    allOf: [{ properties: { b: { $ref: '#/allOf/1/properties/a' } } }, { properties: { a: TEXT } }],
  },
  'a name with an escape': {
    oneOf: [{ type: 'object', properties: { b: { $ref: '#/$defs/My%20Text' } } }],
    $defs: { 'My Text': TEXT },
  },
  'an anchor': {
    oneOf: [{ type: 'object', properties: { b: { $ref: '#text' } } }],
    definitions: { T: { ...TEXT, $anchor: 'text' } },
  },
  'an id': {
    oneOf: [{ type: 'object', properties: { b: { $ref: 'text.json' } } }],
    $defs: { T: { ...TEXT, $id: 'text.json' } },
  },
  'the id of the root': {
    $id: 'https://example.com/tool.json',
    oneOf: [{ type: 'object', properties: { b: { $ref: 'https://example.com/tool.json#/$defs/T' } } }],
    $defs: { T: TEXT },
  },
  'a reference behind a reference': {
    oneOf: [
      { type: 'object', properties: { b: { $ref: '#/oneOf/0/properties/c' }, c: { $ref: '#/$defs/T' } } },
    ],
    $defs: { T: TEXT },
  },
}

void t.test('a reference leads to the same schema after a change, for each vendor', (t) => {
  const follow = (root: JsonObject, schema: unknown): unknown => {
    const { $ref } = schema as { $ref?: string }
    if ($ref === undefined) return schema
    let at: unknown = root
    for (const token of $ref.split('/').slice(1)) at = (at as Record<string, unknown>)[token]
    return follow(root, at)
  }
  for (const vendor of ['openai', 'anthropic', 'bedrock', 'nova', 'gemini'] as const) {
    for (const [name, schema] of Object.entries(REFERENCES)) {
      const [root] = fitted(schema, vendor)
      t.same(dangling(root), [], `${vendor}: ${name}`)
      if (vendor === 'gemini') continue
      const { b } = root['properties'] as Record<string, unknown>
      t.match(follow(root, b), TEXT, `${vendor}: ${name}`)
    }
  }
  t.end()
})

void t.test('a reference that needs no change stays, one that leads nowhere is lost', (t) => {
  const own = {
    type: 'object',
    properties: { a: { $ref: '#/$defs/T' }, b: { $ref: '#' } },
    $defs: { T: TEXT },
  }
  for (const vendor of ['openai', 'anthropic', 'bedrock'] as const) {
    t.same(fitted(own, vendor), [own, []])
    t.equal(fitted(own, vendor)[0], own)
  }
  for (const $ref of ['#/$defs/Nothing', 'https://example.com/other.json', '#nothing', 'x/y']) {
    const foreign = { type: 'object', properties: { a: { $ref, description: 'Its name.' } } }
    for (const vendor of ['openai', 'anthropic', 'bedrock', 'nova', 'gemini'] as const) {
      const [root, lost] = fitted(foreign, vendor)
      t.same(root, { type: 'object', properties: { a: { description: 'Its name.' } } }, `${vendor} ${$ref}`)
      t.same(lost, ['tools.parameters'])
    }
  }
  const data = { type: 'object', properties: { $ref: TEXT, x: { enum: [{ $ref: '#/nothing' }] } } }
  t.equal(fitted(data, 'openai')[0], data)
  t.end()
})

void t.test('schemas that contain themselves by any path end', (t) => {
  const tree = {
    anyOf: [{ type: 'object', properties: { kids: { type: 'array', items: { $ref: '#/anyOf/0' } } } }],
  }
  for (const vendor of ['openai', 'anthropic', 'bedrock', 'gemini'] as const) {
    const [root] = fitted(tree, vendor)
    t.same(dangling(root), [], vendor)
    t.match(JSON.stringify(root), '#/$defs/anyOf_0')
  }
  t.end()
})

void t.test('a root that is no object is reported', (t) => {
  for (const vendor of ['openai', 'anthropic', 'bedrock', 'nova', 'gemini'] as const) {
    for (const type of ['array', 'string']) {
      t.ok(fitted({ type, items: TEXT }, vendor)[1].length > 0, `${vendor} ${type}`)
    }
  }
  t.end()
})

void t.test('a reference follows keywords that are enforced, and names that are changed', (t) => {
  const properties = { a: { oneOf: [{ type: 'string' }] }, b: { $ref: '#/properties/a/oneOf/0' } }
  const closed = { type: 'object', additionalProperties: false, properties }
  const enforced = enforcedSchema(closed, new SchemaBudget())
  t.ok('schema' in enforced)
  if ('schema' in enforced) t.same(dangling(enforced.schema), [])
  const parameters = { type: 'object', properties: { 'a b': TEXT, c: { $ref: '#/properties/a b' } } }
  const tools = [{ name: 'f', parameters }]
  const [renamed] = withWireProperties({ ...request(), tools }).tools
  t.same(dangling(renamed?.parameters ?? {}), [])
  t.notMatch(JSON.stringify(renamed), 'a b"')
  t.end()
})
