/** The pages of the rail in order, with their keyboard shortcuts. */
import type { IconName } from '../components/actions/icon.js'

/** A page of the rail. */
export interface Section {
  readonly path: string
  readonly name: string
  readonly icon: IconName
  /** The letter after `g`. */
  readonly key: string
  readonly adminOnly: boolean
}

/** The pages, in the order of the rail. */
export const SECTIONS: readonly Section[] = [
  { path: '/', name: 'Overview', icon: 'overview', key: 'o', adminOnly: false },
  { path: '/keys', name: 'Keys', icon: 'keys', key: 'k', adminOnly: false },
  { path: '/usage', name: 'Usage', icon: 'usage', key: 'u', adminOnly: false },
  { path: '/requests', name: 'Requests', icon: 'requests', key: 'r', adminOnly: false },
  { path: '/models', name: 'Models', icon: 'models', key: 'm', adminOnly: false },
  { path: '/playground', name: 'Playground', icon: 'playground', key: 'p', adminOnly: false },
  { path: '/operations', name: 'Operations', icon: 'operations', key: 'a', adminOnly: true },
  { path: '/providers', name: 'Providers', icon: 'providers', key: 'v', adminOnly: true },
  {
    path: '/configuration',
    name: 'Configuration',
    icon: 'file',
    key: 'c',
    adminOnly: true,
  },
  { path: '/accounts', name: 'Accounts', icon: 'accounts', key: 't', adminOnly: true },
]
