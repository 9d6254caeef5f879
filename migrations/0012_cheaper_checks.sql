-- The conditions of the columns do not change, only how they are written. For IN with more than two values, SQLite
-- makes a temporary table each time that it checks a row.
--
-- SQLite documents such a change of the schema's text for CHECK constraints:
-- https://www.sqlite.org/lang_altertable.html. PRAGMA schema_version, which tells other connections to read the schema
-- again, is not needed: other connections are opened after the migrations, and both texts mean the same.
PRAGMA writable_schema = ON;

UPDATE sqlite_schema
SET sql = replace(sql,
    'status IN (''initializing'', ''running'', ''completed'', ''failed'', ''cancelled'', ''interrupted'')',
    'status = ''initializing'' OR status = ''running'' OR status = ''completed'' OR status = ''failed''
            OR status = ''cancelled'' OR status = ''interrupted''')
WHERE type = 'table' AND name = 'agents';

UPDATE sqlite_schema
SET sql = replace(replace(replace(sql,
    'state IN (''queued'', ''running'', ''ended'')',
    'state = ''queued'' OR state = ''running'' OR state = ''ended'''),
    'outcome IN (''completed'', ''failed'', ''cancelled'', ''interrupted'')',
    'outcome = ''completed'' OR outcome = ''failed'' OR outcome = ''cancelled'' OR outcome = ''interrupted'''),
    'stop IN (''cancelled'', ''turn_timeout'', ''idle_timeout'', ''stream_timeout'', ''after_result'',
            ''spool_bytes'', ''message_bytes'')',
    'stop = ''cancelled'' OR stop = ''turn_timeout'' OR stop = ''idle_timeout'' OR stop = ''stream_timeout''
            OR stop = ''after_result'' OR stop = ''spool_bytes'' OR stop = ''message_bytes''')
WHERE type = 'table' AND name = 'turns';

UPDATE sqlite_schema
SET sql = replace(sql,
    'type IN (''assistant'', ''user'', ''system'', ''error'', ''tool'', ''response'')',
    'type = ''assistant'' OR type = ''user'' OR type = ''system'' OR type = ''error'' OR type = ''tool''
        OR type = ''response''')
WHERE type = 'table' AND name = 'agent_messages';

UPDATE sqlite_schema
SET sql = replace(sql,
    'media_type IN (''image/png'', ''image/jpeg'', ''image/gif'', ''image/webp'')',
    'media_type = ''image/png'' OR media_type = ''image/jpeg'' OR media_type = ''image/gif''
        OR media_type = ''image/webp''')
WHERE type = 'table' AND name = 'prompt_images';

PRAGMA writable_schema = RESET;
