/** Arguments of a call that are none: providers and clients also write them as blank text or as null. */

/** Whether the JSON text of a call's arguments is blank or null, which both mean an empty object. */
export function hasNoArguments(json: string): boolean {
  const text = json.trim()
  return text === '' || text === 'null'
}
