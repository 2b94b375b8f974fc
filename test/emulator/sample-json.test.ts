/**
 * Goal: emulated arguments fit their JSON Schemas.
 * Method: many seeds per schema, validated by a small independent checker.
 */
import t from 'tap'
import { arrayOf, isObject, objectOf, stringOf } from '../../src/base/json.js'
import { sampleOf } from '../../src/emulator/model-output.js'
import { seededRandom } from '../../src/emulator/seeded-random.js'
import type { JsonObject, JsonValue } from '../../src/base/json.js'

/** The errors of a value. Supports only the keywords of the schemas below. */
function faultsIn(schema: JsonObject, value: JsonValue | undefined, at = '$'): string[] {
  const bad = (why: string): string[] => [`${at}: ${why} (${JSON.stringify(value)})`]
  if (schema.enum !== undefined) {
    return arrayOf(schema.enum).includes(value ?? null) ? [] : bad('not in the enum')
  }
  switch (stringOf(schema.type)?.toLowerCase()) {
    case 'string': {
      if (typeof value !== 'string') {
        return bad('no string')
      }
      const { minLength = 0, maxLength = 9999 } = schema
      const fits = value.length >= Number(minLength) && value.length <= Number(maxLength)
      return fits ? [] : bad('length')
    }
    case 'integer':
    case 'number': {
      if (typeof value !== 'number') {
        return bad('no number')
      }
      const whole = stringOf(schema.type)?.toLowerCase() === 'number' || Number.isInteger(value)
      const { minimum = -Infinity, maximum = Infinity, multipleOf } = schema
      const step = multipleOf === undefined || value % Number(multipleOf) === 0
      return whole && step && value >= Number(minimum) && value <= Number(maximum) ? [] : bad('range')
    }
    case 'boolean':
      return typeof value === 'boolean' ? [] : bad('no boolean')
    case 'array': {
      if (!Array.isArray(value)) {
        return bad('no array')
      }
      const { minItems = 0, maxItems = 999 } = schema
      const fits = value.length >= Number(minItems) && value.length <= Number(maxItems)
      const inside = value.flatMap((item, index) => faultsIn(objectOf(schema.items), item, `${at}[${index}]`))
      return fits ? inside : bad('item count')
    }
    default: {
      if (!isObject(value)) {
        return bad('no object')
      }
      const required = arrayOf(schema.required).filter((name) => typeof name === 'string')
      const missing = required.filter((name) => !(name in value))
      const inside = Object.entries(value).flatMap(([name, inner]) =>
        faultsIn(objectOf(objectOf(schema.properties)[name]), inner, `${at}.${name}`),
      )
      return [...missing.map((name) => `${at}.${name} is missing`), ...inside]
    }
  }
}

const SCHEMAS: Record<string, JsonObject> = {
  flat: {
    type: 'object',
    properties: {
      city: { type: 'string', maxLength: 12 },
      unit: { enum: ['c', 'f'] },
      days: { type: 'integer', minimum: 1, maximum: 7 },
      score: { type: 'number', minimum: -1, maximum: 1 },
      even: { type: 'integer', multipleOf: 2, minimum: 3, maximum: 9 },
      below: { type: 'integer', maximum: -5 },
      sure: { type: 'boolean' },
    },
    required: ['city', 'unit'],
  },
  nested: {
    type: 'object',
    properties: {
      who: {
        type: 'object',
        properties: { tags: { type: 'array', items: { type: 'string' }, minItems: 3 } },
        required: ['tags'],
      },
      codes: { type: 'array', items: { type: 'integer' }, maxItems: 1 },
      long: { type: 'string', minLength: 40 },
    },
    required: ['who', 'codes', 'long'],
  },
  capitals: {
    type: 'OBJECT',
    properties: { city: { type: 'STRING' }, list: { type: 'ARRAY', items: { type: 'NUMBER' } } },
    required: ['city', 'list'],
  },
}

void t.test('a sample fits its schema for every seed', (t) => {
  for (const [name, schema] of Object.entries(SCHEMAS)) {
    const found = Array.from({ length: 200 }, (_unused, seed) =>
      faultsIn(schema, sampleOf(schema, { random: seededRandom(seed), hint: undefined })),
    )
    t.same(found.flat(), [], name)
  }
  t.end()
})

void t.test('references, unions, constants and recursion terminate', (t) => {
  const random = seededRandom(7)
  const tree: JsonObject = {
    $ref: '#/$defs/node',
    $defs: {
      node: {
        type: 'object',
        properties: {
          kind: { const: 'node' },
          name: { anyOf: [{ type: 'null' }, { type: 'string' }] },
          both: {
            allOf: [
              { type: 'object', properties: { a: { type: 'boolean' } }, required: ['a'] },
              { properties: { b: { type: 'integer' } }, required: ['b'] },
            ],
          },
          next: { $ref: '#/$defs/node' },
        },
        required: ['kind', 'both'],
      },
    },
  }
  const value = objectOf(sampleOf(tree, { random, hint: undefined }))
  t.equal(value.kind, 'node')
  t.type(value.name, 'string')
  t.match(value.both, { a: Boolean, b: Number })
  t.ok(JSON.stringify(value).length < 5000)
  t.same(sampleOf({ $ref: '#/nowhere' }, { random, hint: undefined }), {})
  t.end()
})

void t.test('the same seed gives the same sample', (t) => {
  const schema = SCHEMAS.flat
  const once = sampleOf(schema, { random: seededRandom(3), hint: 'Oslo' })
  t.same(sampleOf(schema, { random: seededRandom(3), hint: 'Oslo' }), once)
  t.equal(objectOf(once).city, 'Oslo')
  t.end()
})
