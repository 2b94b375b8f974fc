/**
 * The definitions of one JSON Schema (`$defs` or the older `definitions`) and the references between them.
 * Linear in the size of the schema: every definition is searched once.
 */
import { isObject, type JsonObject, type JsonValue } from '../../../../chat/json.js'
import { cyclesOf } from './schema-cycles.js'

/** Maximum depth of the search for references; deeper than real schemas. */
const MAX_DEPTH = 64

/** The definitions of one schema and the graph of references between them; '' is the root. */
export class SchemaRefs {
  private readonly definitions = new Map<string, JsonObject>()
  private readonly edges = new Map<string, Set<string>>()
  /** The number of each definition's cycle; unique for a definition without one. */
  private readonly cycles: ReadonlyMap<string, number>

  constructor(root: JsonObject) {
    for (const group of [root.definitions, root.$defs]) {
      if (!isObject(group)) continue
      for (const [name, schema] of Object.entries(group)) {
        if (isObject(schema)) this.definitions.set(name, schema)
      }
    }
    this.edges.set('', this.refsIn({ ...root, $defs: null, definitions: null }))
    for (const [name, schema] of this.definitions) this.edges.set(name, this.refsIn(schema))
    this.cycles = cyclesOf(this.edges)
  }

  /** The definitions' names in the order of the schema. */
  names(): string[] {
    return [...this.definitions.keys()]
  }

  /** The definition, or an empty schema. */
  definition(name: string): JsonObject {
    return this.definitions.get(name) ?? {}
  }

  /**
   * The name of the definition that a `$ref` refers to; '' for the root, null for anything outside this
   * schema.
   */
  nameOf(ref: string): string | null {
    if (ref === '#') return ''
    const token = /^#\/(?:\$defs|definitions)\/([^/]+)$/.exec(ref)?.[1]
    if (token === undefined) return null
    const name = token.replaceAll('~1', '/').replaceAll('~0', '~')
    return this.definitions.has(name) ? name : null
  }

  /** True if the definition `to`, which `from` refers to, leads back to `from`. */
  leadsBack(from: string, to: string): boolean {
    return this.cycles.get(from) === this.cycles.get(to)
  }

  /** The definition to copy into another schema; null if it contains itself. */
  copyOf(name: string): JsonObject | null {
    for (const next of this.edges.get(name) ?? []) if (this.leadsBack(name, next)) return null
    return this.definition(name)
  }

  private refsIn(schema: JsonValue, found = new Set<string>(), depth = 0): Set<string> {
    if (depth > MAX_DEPTH) return found
    if (Array.isArray(schema)) {
      for (const item of schema) this.refsIn(item, found, depth + 1)
    } else if (isObject(schema)) {
      for (const [key, value] of Object.entries(schema)) {
        if (key === '$ref' && typeof value === 'string') {
          const name = this.nameOf(value)
          if (name !== null) found.add(name)
        } else if (value !== undefined) this.refsIn(value, found, depth + 1)
      }
    }
    return found
  }
}
