/** The configuration of an archive for tests. */
import type { ArchiveConfig } from '../../../src/config/config.js'

/** The defaults of the file, with these values. */
export function archiveConfig(values: Partial<ArchiveConfig> & Pick<ArchiveConfig, 'url'>): ArchiveConfig {
  return {
    keepDays: 400,
    sumsDays: 1_100,
    hotHours: 24,
    waitingMaxBytes: 1_073_741_824,
    spoolMaxBytes: 10_737_418_240,
    prefix: 'sluice_',
    tls: { ca: null, cert: null, key: null, serverName: null },
    settings: {},
    folder: process.cwd(),
    ...values,
  }
}
