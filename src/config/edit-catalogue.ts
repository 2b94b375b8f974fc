/** Changes entries in the text of a catalogue: other entries, comments and their order stay. */
import { isMap, isSeq, parseDocument } from 'yaml'
import { objectOf, type JsonObject } from '../base/json.js'

/** An entry that replaces the one of its id or is added; null removes it. */
export interface CatalogueEdit {
  readonly id: string
  readonly entry: JsonObject | null
}

/** The text of the catalogue with these entries, collected at `asOf`. The text is a valid catalogue. */
export function editCatalogue(text: string, edits: readonly CatalogueEdit[], asOf: string): string {
  const document = parseDocument(text, { schema: 'core', version: '1.2' })
  const models: unknown = document.get('models')
  if (!isSeq(models)) return text
  const byId = new Map(edits.map((edit) => [edit.id, edit]))
  models.items = models.items.flatMap((item) => {
    const id: unknown = isMap(item) ? item.get('id') : undefined
    const edit = typeof id === 'string' ? byId.get(id) : undefined
    if (edit === undefined) return [item]
    byId.delete(edit.id)
    return edit.entry === null ? [] : [document.createNode(objectOf(edit.entry))]
  })
  for (const { entry } of byId.values()) if (entry !== null) models.items.push(document.createNode(entry))
  if (document.get('as_of') === undefined) document.set('as_of', asOf)
  return document.toString({ lineWidth: 0, flowCollectionPadding: false })
}
