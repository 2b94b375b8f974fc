/**
 * Filters by what keys have, with proposals: from the keys that were made last, and from those that a search
 * finds.
 */
import type { Key } from '../../../control/dashboard/schema/schema.js'
import { read } from '../api/endpoints.js'
import { useResource } from '../api/use-resource.js'
import type { ListFilter } from '../components/filter-bar.js'
import { optionsOf, type Option } from '../components/options.js'
import { useScope } from '../shell/session.js'

const MOST = 100

/** The filters by the key itself, by a label `name=value`, and by who made the key. */
export function useKeyFilters(): Readonly<Record<'key' | 'label' | 'maker', ListFilter>> {
  const account = useScope()
  const asked = { account, state: 'all', limit: MOST }
  const recent = useResource('/keys', asked).data?.keys ?? []
  const found =
    (optionsFrom: (keys: readonly Key[]) => readonly Option[]) =>
    async (search: string): Promise<readonly Option[]> =>
      optionsFrom((await read('/keys', { ...asked, search })).keys)
  const labelsWith = (text: string) => (keys: readonly Key[]) =>
    labelOptions(keys).filter(({ value }) => value.toLowerCase().includes(text.trim().toLowerCase()))
  return {
    key: {
      name: 'key',
      label: 'Key',
      options: [...recent.map(keyOption), ...optionsOf(['playground'])],
      find: found((keys) => keys.map(keyOption)),
    },
    label: {
      name: 'label',
      label: 'Label',
      options: labelOptions(recent),
      find: (text) => found(labelsWith(text))(text),
      isFree: true,
    },
    maker: {
      name: 'createdBy',
      label: 'Created by',
      options: unique(recent.flatMap(({ createdBy }) => createdBy ?? [])),
      isFree: true,
    },
  }
}

function keyOption({ id, name, lastFour }: Key): Option {
  return { value: id, label: `${name} …${lastFour}` }
}

function labelOptions(keys: readonly Key[]): readonly Option[] {
  return unique(
    keys.flatMap(({ labels }) => Object.entries(labels).map(([name, value]) => `${name}=${value}`)),
  )
}

function unique(values: readonly string[]): readonly Option[] {
  return optionsOf([...new Set(values)].sort())
}
