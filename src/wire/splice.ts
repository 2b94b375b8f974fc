/**
 * Edits to the top-level members of a JSON object, made on its bytes.
 * Never re-serialises what did not change: big integers, key order and escapes survive.
 */

/** Sets (or, with `json: null`, removes) one top-level key of a JSON object in place. */
export interface Edit {
  key: string
  /** The new value as JSON text; null removes the key. */
  json: string | null
}
