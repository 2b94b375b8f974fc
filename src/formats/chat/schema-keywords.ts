/** The keywords of JSON Schema whose values are schemas, for code that walks through a schema. */

/** Deeper than real schemas, and within the limit of the call stack. */
export const MAX_DEPTH = 200

/** The value is an object of schemas. */
export const MAPS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependencies',
])
/** The value is a list of schemas. */
export const LISTS: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems', 'items'])
/** The value is a schema. */
export const SINGLE: ReadonlySet<string> = new Set([
  'items',
  'additionalItems',
  'additionalProperties',
  'not',
  'if',
  'then',
  'else',
  'contains',
  'propertyNames',
  'unevaluatedItems',
  'unevaluatedProperties',
])
