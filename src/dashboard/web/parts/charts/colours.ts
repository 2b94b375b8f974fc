/** Colours of series: the same model has the same colour in all charts of a view, whatever its rank. */
import { useRef } from 'react'

const OTHER = 'other'
const SERIES = 8

/** A name of a custom property that holds the colour. */
export type Colour = `--series-${number}` | '--soft' | '--bad' | '--good' | '--accent'

/** Colours by id; one that was given stays given as long as the view is there. */
export function useColours(ids: readonly string[]): (id: string) => Colour {
  const given = useRef(new Map<string, Colour>())
  for (const id of ids) {
    if (id === OTHER || given.current.has(id)) continue
    given.current.set(id, `--series-${(given.current.size % SERIES) + 1}`)
  }
  return (id) => given.current.get(id) ?? '--soft'
}
